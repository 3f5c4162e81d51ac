"""How fast a trained model answers: `lockstep predict` on card transactions, from files to a file.

The model is that of examples/fraud.yaml, trained for a few steps: how good it is changes nothing here. The clock runs
outside the process, so that starting, loading the weights and opening the files count; the files were indexed before, as
those that a run has read are. `first time` is a run that has to index them too. Processor time is that of the process. The
answers of one thread and of all must be the same bytes.
"""

import argparse
import filecmp
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

from harness import LOCKSTEP, OURS, ROOT, Bench, Metric, RunFailed, WrongResult

CASES = {  # name: (files, output, further arguments)
    "CSV to CSV, all columns": ("tx/*.csv", "answers.csv", []),
    "CSV to CSV, an id": ("tx/*.csv", "answers.csv", ["--id", "card"]),
    "CSV to CSV, first time": ("tx/*.csv", "answers.csv", []),
    "CSV to Parquet, an id": ("tx/*.csv", "answers.parquet", ["--id", "card"]),
    "Parquet to Parquet, an id": ("pq/*.parquet", "answers.parquet", ["--id", "card"]),
    "JSONL to JSONL, an id": ("jsonl/*.jsonl", "answers.jsonl", ["--id", "card"]),
}


def lockstep(folder, *arguments):
    command = [str(LOCKSTEP), *map(str, arguments)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RunFailed(f"lockstep {arguments[0]}: exit code {done.returncode}: {done.stderr.strip().splitlines()[-1]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "processor": used}


def prepare(folder, rows):
    """Everything but the predictions: transactions in three formats, and a run."""
    lockstep(folder, "data", "synth", "fraud", "--rows", rows, "--out", "tx")
    for name, to in (("pq", "parquet"), ("jsonl", "jsonl")):
        lockstep(folder, "data", "convert", "tx", "--to", to, "--out", name)
    lockstep(folder, "train", ROOT / "examples" / "fraud.yaml", "--set", "train.epochs=", "--set", "train.steps=50")


def predict(folder, case, threads):
    files, out, more = CASES[case]
    if "first time" in case:
        for index in pathlib.Path(folder).glob("tx/.lockstep-index/*"):
            index.unlink()
    return lockstep(folder, "predict", "runs/fraud", "--data", files, "--out", out, "--threads", threads, *more)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES, help="only this one; the result is printed, not kept")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, default=5, help="turns of each")
    args = parser.parse_args()

    metrics = [
        Metric("records per second", "1/s", "higher", lambda f: args.rows / f["seconds"]),
        Metric("records per CPU-second", "1/s", "higher", lambda f: args.rows / f["processor"]),
    ]
    bench = Bench("predict")
    with tempfile.TemporaryDirectory(prefix="predict.") as folder:
        prepare(folder, args.rows)

        def ours(case):
            figures = predict(folder, case, args.threads)
            written = pathlib.Path(folder) / CASES[case][1]
            kept = written.with_name("one-thread" + written.suffix)
            if not kept.exists():
                written.rename(written.with_name("all" + written.suffix))
                predict(folder, case, 1)
                written.rename(kept)
                if not filecmp.cmp(kept, written.with_name("all" + written.suffix), shallow=False):
                    raise WrongResult("one thread and several give different answers")
            return figures

        for case in [args.case] if args.case else CASES:
            for kept in pathlib.Path(folder).glob("one-thread.*"):
                kept.unlink()
            predict(folder, case, args.threads)  # indexes the files
            bench.measure(case, {OURS: lambda case=case: ours(case)}, metrics, args.repeats)
    bench.facts = {"rows": args.rows, "threads": args.threads}
    return bench.finish(keep=not args.case)


if __name__ == "__main__":
    sys.exit(main())
