"""What the promise costs: steps of one job whose gradients are summed in canonical order, and in the fast order.

The canonical order gives the same bits on any number of workers; the fast one (strategy.reduce.order: fast) adds up what
each worker has, and its bits change with their number. The job is a small gpt whose step is 16 microbatches in 16 leaves,
with one thread a worker. Counts that divide 16 have one buffer a worker to send in either order; for 3, 5 and 7 the
canonical order sends more than one. Turns are interleaved, and the ratio is the fast step over ours: 0.95 means that
the promise costs 5 % of a step. Where there are fewer processors than workers, these take turns.
"""

import argparse
import os
import sys

from harness import OURS, Bench, Metric
from probes.train_job import WARM_UP, step_figures, train_job

FAST = "fast order"
LEAVES = 16
WORKERS = (2, 3, 4, 5, 7, 8)


def job(steps):
    return {
        "name": "promise",
        "model": {"family": "gpt", "layers": 4, "dim": 256, "heads": 4, "vocab": 256, "seq": 64, "dropout": 0.0},
        "train": {
            "steps": WARM_UP + steps,
            "global_batch": 2 * LEAVES,
            "microbatch": 2,
            "optimizer": {"name": "adamw", "betas": [0.9, 0.95], "weight_decay": 0.1},
            "lr": {"base": 1e-3},
            "precision": "fp32",
            "clip_norm": 1.0,
        },
        "strategy": {"threads": 1, "leaves": LEAVES},
    }


def run(workers, order, steps):
    logged, summary = train_job(job(steps), [f"strategy.workers={workers}", f"strategy.reduce.order={order}"])
    return {**step_figures(logged), "weights_sha256": summary["weights_sha256"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="*", help=f"default: {' '.join(map(str, WORKERS))}")
    parser.add_argument("--steps", type=int, default=12, help="steps that are timed in a turn")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each order")
    parser.add_argument("--into", help="keep the result under this name, also with --workers")
    args = parser.parse_args()

    metrics = [
        Metric("step time", "ms", "lower", lambda f: f["step_ms"]),
        Metric("exposed communication", "fraction", "lower", lambda f: f["exposed_comm"]),
    ]
    bench = Bench(args.into or "promise")
    hashes = set()

    def canonical(workers):
        figures = run(workers, "canonical", args.steps)
        hashes.add(figures["weights_sha256"])
        return figures

    for n in args.workers or WORKERS:
        runners = {OURS: lambda n=n: canonical(n), FAST: lambda n=n: run(n, "fast", args.steps)}
        bench.measure(f"{n} workers {LEAVES} leaves", runners, metrics, args.repeats)
    bench.facts = {"processors": len(os.sched_getaffinity(0)), "weights_of_canonical_order": sorted(hashes)}
    code = bench.finish(keep=not args.workers or bool(args.into))
    if len(hashes) > 1:
        print(f"the canonical order gave {len(hashes)} different weights: the promise is broken", file=sys.stderr)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
