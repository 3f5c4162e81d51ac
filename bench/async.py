"""Asynchronous training with one of four workers five times slower, beside synchronous training of the same job.

Four workers share the cores of one machine, and their speeds would say more about its scheduler than about them. So each is
given a time that a microbatch takes at least (LOCKSTEP_TEST_PACE), far above what it computes for, and sleeps the rest: a
worker's speed is then its own however many share a core, as it is on machines of their own. `own speeds` runs a fast and
a slow worker alone, and adds up what four of them would make together; no run can beat it but by noise.

The quality cases train the fraud job of examples/ and a small gpt on as many samples, synchronously and with the bound that
lets the slow worker be five times slower (13), and compare the loss on held-out records; every turn has another seed. Both
modes have the same job, but that the fraud job has no momentum where it is asynchronous: gradients that come late act as
momentum, and Adam's beta1 of 0.9 on top of them is too much (`--fraud-set` changes that).
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from harness import LOCKSTEP, OURS, Bench, Metric, RunFailed

WORKERS = 4
SLOWER = 5
STALENESS = 13
WARM_UP = 12
LIMIT_S = 900

GPT = {
    "name": "small-gpt",
    "model": {"family": "gpt", "layers": 2, "dim": 64, "heads": 4, "vocab": 64, "seq": 16, "dropout": 0.0},
    "data": {"train": {"format": "synthetic", "samples": 20000}, "eval": {"samples": 512}, "seed": 3},
    "train": {
        "steps": 1500,
        "global_batch": 32,
        "microbatch": 8,
        "lr": {"base": 3e-3, "warmup": "5%", "decay": "cosine"},
    },
    "strategy": {"threads": 1},
}


def paces(microbatch_s):
    return [microbatch_s] * (WORKERS - 1) + [SLOWER * microbatch_s]


def asynchronous(workers=WORKERS):
    return [
        "strategy.mode=async",
        f"strategy.workers={workers}",
        f"strategy.staleness={STALENESS}",
        "strategy.servers=2",
    ]


def train(job, settings, pace, beside=()):
    """Runs the job (a dictionary, or a file's path) and returns its steps after the warm-up and its summary."""
    with tempfile.TemporaryDirectory(prefix="async.") as folder:
        folder = pathlib.Path(folder)
        for link in beside:
            (folder / link.name).symlink_to(link)
        text = job.read_text() if isinstance(job, pathlib.Path) else json.dumps(job)
        (folder / "job.yaml").write_text(text)
        command = [str(LOCKSTEP), "train", "job.yaml", "--set", "output=run"]
        for setting in settings:
            command += ["--set", setting]
        environment = {**os.environ, "LOCKSTEP_TEST_PACE": ",".join(map(str, pace))}
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, env=environment)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"lockstep train: still running after {LIMIT_S} s")
        if done.returncode != 0:
            last = (done.stderr.strip() or "no output").splitlines()[-1]
            raise RunFailed(f"lockstep train: exit code {done.returncode}: {last}")
        lines = map(json.loads, (folder / "run" / "metrics.jsonl").read_text().splitlines())
        steps = [one for one in lines if one["kind"] == "step"]
        return steps[WARM_UP:], json.loads((folder / "run" / "summary.json").read_text())


def samples_s(steps):
    return sum(one["samples"] for one in steps) / sum(one["seconds"] for one in steps)


def measure_speed(bench, args):
    job = {**GPT, "train": {**GPT["train"], "global_batch": 8, "microbatch": 2}}
    pace = paces(args.microbatch_s)

    def paced(settings, pace, steps):
        figures, summary = train(job, [f"train.steps={WARM_UP + steps}", *settings], pace)
        bench.facts.setdefault("ages", {}).setdefault("speed", summary.get("async", {}).get("ages"))
        return samples_s(figures)

    def own_speeds():
        fast = paced(asynchronous(1), [pace[0]], args.steps // 4)
        slow = paced(asynchronous(1), [pace[-1]], args.steps // 8)
        return {"samples_s": (WORKERS - 1) * fast + slow}

    runners = {
        OURS: lambda: {"samples_s": paced(asynchronous(), pace, args.steps)},
        "synchronous": lambda: {"samples_s": paced([f"strategy.workers={WORKERS}"], pace, args.steps // 4)},
        "own speeds": own_speeds,
    }
    title = f"{WORKERS} workers, one {SLOWER} times slower, staleness {STALENESS}"
    bench.measure(title, runners, [Metric("samples per second", "1/s", "higher", lambda f: f["samples_s"])], args.repeats)


def measure_loss(bench, title, job, microbatch_s, args, changes=(), beside=()):
    turns = {}

    def held_out(settings, pace):
        name = settings[0]
        turns[name] = turns.get(name, 0) + 1
        seed = f"train.seed={turns[name]}"
        _, summary = train(job, ["strategy.threads=1", seed, *settings], pace, beside)
        if "async" in summary:
            bench.facts.setdefault("ages", {})[title] = summary["async"]["ages"]
        return {"loss": summary["final_eval"]["loss"], "auc": summary["final_eval"].get("auc")}

    runners = {
        OURS: lambda: held_out([*asynchronous(), *changes], paces(microbatch_s)),
        "synchronous": lambda: held_out(["strategy.workers=1"], [0]),
    }
    metrics = [Metric("held-out loss", "", "lower", lambda f: f["loss"])]
    if title.startswith("fraud"):
        metrics.append(Metric("held-out auc", "", "higher", lambda f: f["auc"]))
    bench.measure(title, runners, metrics, args.repeats)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--microbatch-s", type=float, default=0.05, help="that a microbatch of a fast worker takes")
    parser.add_argument("--steps", type=int, default=160, help="pushes that are timed")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each runner")
    parser.add_argument(
        "--fraud-set", default="train.optimizer.betas=[0.0,0.999]", help="key=value for the asynchronous runs of that job"
    )
    parser.add_argument("--only", choices=["speed", "fraud", "gpt"])
    args = parser.parse_args()

    bench = Bench("async")
    if args.only in (None, "speed"):
        measure_speed(bench, args)
    if args.only in (None, "gpt"):
        measure_loss(bench, f"gpt of 2 layers, {GPT['train']['steps']} updates", GPT, 0.004, args)
    if args.only in (None, "fraud"):
        with tempfile.TemporaryDirectory(prefix="async.") as folder:
            data = pathlib.Path(folder) / "tx"
            synth = [LOCKSTEP, "data", "synth", "fraud", "--rows", "240000", "--out", data]
            subprocess.run(synth, check=True, capture_output=True)
            job = pathlib.Path(__file__).resolve().parent.parent / "examples" / "fraud.yaml"
            measure_loss(bench, "fraud job, 3 epochs of 192,000 records", job, 0.005, args, [args.fraud_set], [data])
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
