"""How long steps wait for their records, and what reading from files costs a training run.

Card transactions are written as CSV once. `lockstep bench input --stalls` measures how fast they can be
read, then emulates steps of 1, 5 and 50 ms that take 1.2 times as long as reading their records does: such steps should never
wait. This is done with memory for a small part of what the order mixes, and with memory for everything; then with 1 GB of the
tables that ./dev bench input has written, streamed through memory that holds what the order mixes and not much more. The last
part trains the fraud model on the first files and on the same number of generated transactions that lie in memory: the ratio
of their speeds.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from harness import LOCKSTEP, OURS, ROOT, Bench, Metric, RunFailed, run_json

ROWS = 1_600_000
DATA = ROOT / "build" / "bench-input-stall"
STEPS_MS = (1, 5, 50)
MEMORY = ("16MiB", "1GiB")
# The parts of these tables are joined, each as many times, to about 1 GB.
WRITTEN = ROOT / "build" / "bench-input"
STREAMED = {"csv": 8, "jsonl": 6, "tfrecord": 5}
STREAMED_MEMORY = ("128MiB", "96MiB")
# Waits lie where an epoch begins, about every second: a shorter time may not see one.
STREAMED_SECONDS = 3
IN_MEMORY = "from memory"
WARM_UP = 20

MODEL = {"family": "tabular", "dim": 16, "rows": 20000, "bottom": [64], "top": [128, 64]}
TRAIN = {
    "global_batch": 1024,
    "microbatch": 128,
    "optimizer": {"name": "adamw", "weight_decay": 0.01},
    "lr": {"base": 1e-3, "base_batch": 128, "scaling": "sqrt", "warmup": "5%", "decay": "linear"},
}
FILES = {
    "train": {
        "format": "csv",
        "files": str(DATA / "train-*.csv"),
        "label": "is_fraud",
        "columns": {"ignore": ["card"]},
    }
}
# As many as the files hold; a few must be held out.
GENERATED = {"train": {"format": "synthetic", "samples": ROWS * 4 // 5}, "eval": {"format": "synthetic", "samples": 1000}}


def write_data():
    if (DATA / "complete").exists():
        return
    command = [LOCKSTEP, "data", "synth", "fraud", "--rows", str(ROWS), "--out", str(DATA), "--overwrite"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (DATA / "complete").touch()


def write_streamed(kind):
    folder = DATA / kind
    if (folder / "complete").exists():
        return folder
    parts = sorted((WRITTEN / kind).glob("part-*"))
    if not parts:
        raise RunFailed(f"no {kind} in {WRITTEN.relative_to(ROOT)}: ./dev bench input writes it")
    folder.mkdir(parents=True, exist_ok=True)
    for i, part in enumerate(parts):
        with (folder / part.name).open("wb") as out:
            for k in range(STREAMED[kind]):
                content = parts[(i + k) % len(parts)].read_bytes()
                header = content.index(b"\n") + 1 if kind == "csv" and k > 0 else 0
                out.write(content[header:])
    (folder / "complete").touch()
    return folder


def streamed_files(kind):
    return {"train": {"format": kind, "files": str(write_streamed(kind) / "part-*"), "label": "label"}}


def write_job(folder, data, steps):
    job = {
        "name": "stall",
        "model": MODEL,
        "data": {**data, "seed": 7},
        "train": {**TRAIN, "steps": steps},
        "output": str(folder / "run"),
    }
    path = folder / "job.yaml"
    path.write_text(json.dumps(job))
    return path


def stalls(files, memory, seconds):
    with tempfile.TemporaryDirectory(prefix="stall.") as folder:
        job = write_job(pathlib.Path(folder), files(), 1)
        command = [LOCKSTEP, "bench", "input", job, "--stalls", "--seconds", seconds, "--set", f"data.memory={memory}"]
        figures = run_json([*command, "--step-ms", *STEPS_MS])
    return {**figures, **{one["step_ms"]: one for one in figures["steps"]}}


def train(data, steps):
    with tempfile.TemporaryDirectory(prefix="stall.") as folder:
        folder = pathlib.Path(folder)
        job = write_job(folder, data, WARM_UP + steps)
        done = subprocess.run([LOCKSTEP, "train", job], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise RunFailed((done.stderr.strip() or "no output").splitlines()[-1].replace(f"{folder}/", ""))
        lines = map(json.loads, (folder / "run" / "metrics.jsonl").read_text().splitlines())
        steps = [one for one in lines if one["kind"] == "step"][WARM_UP:]
    seconds = sum(one["seconds"] for one in steps)
    return {
        "samples_s": sum(one["samples"] for one in steps) / seconds,
        "input_wait": sum(one["time"]["input_wait"] for one in steps) / seconds,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2, help="how long each length of steps is measured")
    parser.add_argument("--steps", type=int, default=400, help="steps of a training run that are timed")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    write_data()
    bench = Bench("input-stall")
    metrics = [Metric("records", "1/s", "higher", lambda f: f["records_per_second"])]
    for ms in STEPS_MS:
        metrics += [
            Metric(f"input wait, steps of {ms} ms", "%", "lower", lambda f, ms=ms: 100 * f[ms]["input_wait"]),
            Metric(
                f"memory peak, steps of {ms} ms",
                "MiB",
                "lower",
                lambda f, ms=ms: f[ms]["memory_peak_bytes"] / 2**20,
                lambda f, ms=ms: f[ms]["memory_limit_bytes"] / 2**20,
            ),
        ]
    for memory in MEMORY:
        ours = {OURS: lambda m=memory: stalls(lambda: FILES, m, args.seconds)}
        bench.measure(f"CSV, data.memory {memory}", ours, metrics, args.repeats)
    for kind in STREAMED:
        for memory in STREAMED_MEMORY:
            ours = {OURS: lambda k=kind, m=memory: stalls(lambda: streamed_files(k), m, max(args.seconds, STREAMED_SECONDS))}
            bench.measure(f"1 GB of {kind}, streamed, data.memory {memory}", ours, metrics, args.repeats)
    bench.measure(
        "training on CSV",
        {OURS: lambda: train(FILES, args.steps), IN_MEMORY: lambda: train(GENERATED, args.steps)},
        [
            Metric("samples", "1/s", "higher", lambda f: f["samples_s"]),
            Metric("input wait", "%", "lower", lambda f: 100 * f["input_wait"]),
        ],
        args.repeats,
    )
    bench.facts = {"rows": ROWS, "slack": 1.2, "floor of memory peaks": "the limit, which they must not pass"}
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
