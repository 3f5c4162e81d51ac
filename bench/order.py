"""What it costs to know which record stands at a position: time and memory, from 10^6 to 10^10 records.

`lockstep bench order` works records out by microbatches of a lane, as steps ask for them, and one by one at positions
far apart. Nothing is stored, so memory must not grow with the records. There is no peer: pipelines that keep a
permutation keep 8 bytes a record, and those that do not have no random access. The goal is 200 ns a position.
"""

import argparse

from harness import LOCKSTEP, OURS, Bench, Metric, run_json

GOAL_NS = 200
RECORDS = (10**6, 10**8, 10**10)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    bench = Bench("order")
    metrics = [
        Metric("block order", "ns/position", "lower", lambda f: f["block_ns"]),
        Metric("block order, scattered", "ns/position", "lower", lambda f: f["block_scattered_ns"]),
        Metric("global order", "ns/position", "lower", lambda f: f["global_ns"]),
        Metric("global order, scattered", "ns/position", "lower", lambda f: f["global_scattered_ns"]),
        Metric("mixture of three, block order", "ns/position", "lower", lambda f: f["mixture_ns"]),
        Metric("memory of the process", "kB", "lower", lambda f: f["memory_kb"]),
        Metric("memory added by orders", "kB", "lower", lambda f: f["added_kb"]),
    ]
    for records in RECORDS:
        for block in (2, 256):
            command = [LOCKSTEP, "bench", "order", "--records", records, "--block", block]
            case = f"{records:.0e} records, blocks of {block}".replace("e+", "e")
            bench.measure(case, {OURS: lambda command=command: run_json(command)}, metrics, args.repeats)
    worst = max(case["ours"] for case in bench.cases if case["unit"] == "ns/position")
    bench.facts["goal_ns"] = GOAL_NS
    bench.facts["worst_ns"] = worst
    bench.finish()


if __name__ == "__main__":
    main()
