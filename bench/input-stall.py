"""How long steps wait for their records, and what reading from files costs a training run.

Card transactions are written as CSV once. `lockstep bench input --stalls` measures how fast they can be
read, then emulates steps of 1, 5 and 50 ms that take 1.2 times as long as reading their records does: such steps should never
wait. This is done with memory for what the order mixes, and with memory for everything; then with 1 GB of the
tables that ./dev bench input has written, streamed through memory that holds what the order mixes and not much more, and with its
Parquet files, in memory that holds their dictionaries and what the order mixes. The steps are measured `--repeats` times, what can
be read before and after each; where that changed by more than 8 %, the machine did not keep its speed and another run is measured.
Of runs that waited for more than a hundredth, slack and what the machine did meanwhile (other processes, the hypervisor, files that
were not in memory) are kept too. The last part trains the fraud model on the first files and on the same number of generated
transactions that lie in memory: the ratio of their speeds. All takes about fourteen minutes; `--only WORD` measures the cases with that
word in their name and keeps nothing, and `--quick` tries the first cases and the last in seconds.
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
MEMORY = ("64MiB", "1GiB")
# The parts of these tables are joined, each as many times, to about 1 GB.
WRITTEN = ROOT / "build" / "bench-input"
STREAMED = {"csv": 8, "jsonl": 6, "tfrecord": 5}
STREAMED_CASES = (("csv", "128MiB"), ("csv", "96MiB"), ("jsonl", "128MiB"), ("tfrecord", "128MiB"))
PARQUET_MEMORY = "512MiB"
# Waits lie where an epoch begins, every one to two seconds: a shorter time may not see one.
STREAMED_SECONDS = 2
IN_MEMORY = "from memory"
WARM_UP = 20
# A ratio of two programs that each take both processors needs more turns than steps that should not wait at all.
TRAIN_TURNS = 4

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


def parquet_files():
    files = WRITTEN / "parquet" / "part-*"
    if not list(files.parent.glob(files.name)):
        raise RunFailed(f"no parquet in {WRITTEN.relative_to(ROOT)}: ./dev bench input writes it")
    return {"train": {"format": "parquet", "files": str(files), "label": "label"}}


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


def keep_in_memory(data):
    """Files that were not read for a minute may have left the system's memory: that is not what is measured."""
    pattern = pathlib.Path(data["train"]["files"])
    for path in pattern.parent.glob(pattern.name):
        with path.open("rb") as file:
            while file.read(1 << 22):
                pass


def stalls(data, memory, seconds, repeats):
    """The figures of each repetition, as {step: figures}."""
    keep_in_memory(data)
    with tempfile.TemporaryDirectory(prefix="stall.") as folder:
        job = write_job(pathlib.Path(folder), data, 1)
        command = [LOCKSTEP, "bench", "input", job, "--stalls", "--seconds", seconds, "--set", f"data.memory={memory}"]
        figures = run_json([*command, "--repeats", repeats, "--step-ms", *STEPS_MS])
    records = {"records_per_second": figures["records_per_second"], "steps": figures["steps"]}
    return [{**records, **{step["step_ms"]: step["runs"][i] for step in figures["steps"]}} for i in range(repeats)]


def in_turns(measure):
    """A runner that measures all repetitions when it is first called, and gives one of them each time."""
    measured = []

    def one():
        if not measured:
            measured.extend(measure())
        return measured.pop(0)

    return one


def noise_of(steps):
    """What disturbed the measurements, by length of steps: only runs that waited for more than a hundredth."""
    return {
        f"{step['step_ms']:g} ms": [
            {"input_wait": run["input_wait"], "slack": run["slack"], **run["machine"]}
            for run in step["runs"]
            if run["input_wait"] > 0.01
        ]
        for step in steps
        if any(run["input_wait"] > 0.01 for run in step["runs"])
    }


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
    parser.add_argument("--seconds", type=float, default=1, help="how long each length of steps is measured")
    parser.add_argument("--steps", type=int, default=1000, help="steps of a training run that are timed")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="only cases with this in their name; nothing is kept")
    parser.add_argument("--quick", action="store_true", help="one short turn of the cases on card transactions; nothing is kept")
    args = parser.parse_args()
    if args.quick:
        args.seconds, args.steps, args.repeats, args.only = 0.1, 10, 1, args.only or "CSV"
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
    waited, sentences = {}, {}

    def measure_stalls(case, data, memory, seconds):
        if args.only not in case:
            return

        def measure():
            runs = stalls(data(), memory, seconds, args.repeats)
            steps = runs[0]["steps"]
            sentences[case] = {f"{step['step_ms']:g} ms": step["sentence"] for step in steps}
            if noise := noise_of(steps):
                waited[case] = noise
            return runs

        bench.measure(case, {OURS: in_turns(measure)}, metrics, args.repeats)

    for memory in MEMORY:
        measure_stalls(f"CSV, data.memory {memory}", lambda: FILES, memory, args.seconds)
    for kind, memory in STREAMED_CASES:
        case = f"1 GB of {kind}, streamed, data.memory {memory}"
        measure_stalls(case, lambda k=kind: streamed_files(k), memory, max(args.seconds, STREAMED_SECONDS))
    case = f"Parquet, 40 columns, mixed, data.memory {PARQUET_MEMORY}"
    measure_stalls(case, parquet_files, PARQUET_MEMORY, max(args.seconds, STREAMED_SECONDS))
    if args.only in "training on CSV":
        bench.measure(
            "training on CSV",
            {OURS: lambda: train(FILES, args.steps), IN_MEMORY: lambda: train(GENERATED, args.steps)},
            [
                Metric("samples", "1/s", "higher", lambda f: f["samples_s"]),
                Metric("input wait", "%", "lower", lambda f: 100 * f["input_wait"]),
            ],
            TRAIN_TURNS * args.repeats,
        )
    bench.facts = {
        "rows": ROWS,
        "slack": 1.2,
        "floor of memory peaks": "the limit, which they must not pass",
        "sentences": sentences,
        "what the machine did in runs that waited for more than a hundredth": waited,
    }
    return bench.finish(keep=not args.only)


if __name__ == "__main__":
    sys.exit(main())
