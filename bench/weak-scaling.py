"""Weak scaling on one machine: a gpt of 6 layers and width 384, one thread a worker, one microbatch a worker and step.

Ours beside PyTorch's DistributedDataParallel with Gloo: samples per second, and efficiency, a worker's speed among N over
its speed alone. Turns are interleaved.

Why is efficiency below 1? Our part is taken apart with figures of its own. N copies of the training step that share
nothing but the machine lose what memory, caches and clocks cost, less all but 1/N of the update, which workers of a host
share out; the job itself says which share of a step waited for others (exposed_comm). Both together should give the
efficiency that was observed. The copies in turn are put beside what
the bare machine loses with N busy cores: bandwidth (a triad), which the element-wise part of a step should follow, and
multiply-adds on registers, which the matrix products should. All of it is in the facts of the result.
"""

import argparse
import concurrent.futures
import os
import statistics
import subprocess
import sys

from harness import LOCKSTEP, OURS, PEERS_PYTHON, ROOT, Bench, Metric, RunFailed, run_json
from probes.train_job import WARM_UP, step_figures, train_job

DDP = "torch ddp gloo"
MODEL = {"layers": 6, "dim": 384, "heads": 6, "vocab": 256, "seq": 128}
# Samples of a worker's microbatch. With 4 a step takes a third of a second on a core with AVX-512 and its matrix products
# decide; with 1 the 43 MB of gradients weigh four times as much.
BATCHES = (1, 4)
LIMITS_PROGRAM = ROOT / "build" / "probes" / "limits"


def flags(**values):
    return [part for name, value in values.items() for part in (f"--{name}", value)]


def job(batch, workers, steps):
    return {
        "name": "weak",
        "model": {"family": "gpt", **MODEL, "dropout": 0.0},
        "train": {
            "steps": WARM_UP + steps,
            "global_batch": batch * workers,
            "microbatch": batch,
            "optimizer": {"name": "adamw", "betas": [0.9, 0.95], "weight_decay": 0.1},
            "lr": {"base": 1e-3},
            "precision": "fp32",
            "clip_norm": 1.0,
        },
        "strategy": {"workers": workers, "threads": 1, "leaves": workers},
    }


class Scaling:
    """Runs N workers of either kind; what one worker did alone is the measure of the rest."""

    def __init__(self, batch, steps):
        self.batch = batch
        self.steps = steps
        self.alone = {OURS: [], DDP: []}
        self.exposed = {}  # by workers: of every turn

    def ours(self, workers):
        steps, _ = train_job(job(self.batch, workers, self.steps))
        figures = step_figures(steps)
        self.exposed.setdefault(workers, []).append(figures["exposed_comm"])
        return self.compared(OURS, workers, figures)

    def ddp(self, workers):
        command = [PEERS_PYTHON, ROOT / "bench" / "peers" / "torch_ddp.py"]
        command += flags(workers=workers, batch=self.batch, steps=self.steps, warmup=WARM_UP, **MODEL)
        return self.compared(DDP, workers, run_json(command, env={"OMP_NUM_THREADS": "1"}))

    def compared(self, name, workers, figures):
        per_worker = figures["samples_s"] / workers
        if workers == 1:
            self.alone[name].append(per_worker)
        alone = self.alone[name]
        return {**figures, "efficiency": per_worker / statistics.median(alone) if alone else None}


def copies(batch, count, steps):
    """`count` copies of the same step at the same time, without communication: the mean of their medians."""
    command = [LOCKSTEP, "bench", "step", "--model", "gpt", "--floor", "--json"]
    command += flags(batch=batch, threads=1, steps=steps, warmup=WARM_UP, **MODEL)
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        runs = [pool.submit(run_json, command) for _ in range(count)]
        figures = [run.result() for run in runs]
    whole, gemm, update = (statistics.mean(one[k] for one in figures) for k in ("step_ms", "gemm_floor_ms", "update_ms"))
    step = whole - update * (1 - 1 / count)
    return {"copies": count, "step_ms": step, "gemm_ms": gemm, "update_ms": update / count, "rest_ms": step - gemm}


def machine_limits(counts):
    LIMITS_PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    source = ROOT / "bench" / "probes" / "limits.c"
    try:
        command = ["cc", "-O3", "-march=native", "-o", LIMITS_PROGRAM, source, "-lpthread"]
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as reason:
        raise RunFailed(f"cc: {reason}")
    return run_json([LIMITS_PROGRAM, 1.0, *counts])["limits"]


def loss_of(bench, scaling, counts, together, limits):
    """For every number of workers, the efficiency observed beside what its parts come to. All are 1 for one worker."""
    efficiency = {c["case"]: c["ours"] for c in bench.cases if c["metric"] == "efficiency"}
    rows = []
    for n, copy, limit in zip(counts, together, limits):
        alone, one = together[0], limits[0]
        if efficiency.get(case_name(scaling.batch, n)) is None:
            continue
        exposed = statistics.median(scaling.exposed[n])
        share = {
            "copies": alone["step_ms"] / copy["step_ms"],
            "copies_gemm": alone["gemm_ms"] / copy["gemm_ms"],
            "copies_rest": alone["rest_ms"] / copy["rest_ms"],
            "memory": limit["triad_gb_s"] / one["triad_gb_s"] / n,
            "arithmetic": limit["fma_gflop_s"] / one["fma_gflop_s"] / n,
        }
        moved = alone["rest_ms"] - alone["update_ms"] * (1 - 1 / n)
        machine = alone["step_ms"] / (alone["gemm_ms"] / share["arithmetic"] + moved / share["memory"])
        rows.append(
            {
                "workers": n,
                "observed": efficiency[case_name(scaling.batch, n)],
                "copies_and_waiting": share["copies"] * (1 - exposed),
                "machine_and_waiting": machine * (1 - exposed),
                "exposed_comm": exposed,
                **share,
            }
        )
    return rows


def print_rows(title, rows):
    print(f"\n{title}")
    for line in [list(rows[0]), *([f"{v:.3g}" for v in row.values()] for row in rows)]:
        print("  ".join(cell.rjust(len(name)) for cell, name in zip(line, rows[0])))


def case_name(batch, workers):
    return f"gpt 6x384 B{batch} T{MODEL['seq']}, {workers} workers"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="*", help="default: 1, 2, 4, ... up to the processors here")
    parser.add_argument("--steps", type=int, default=12, help="steps that are timed in a turn")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each")
    parser.add_argument("--batches", type=int, nargs="*", default=BATCHES, help="samples of a worker's microbatch")
    parser.add_argument("--into", help="keep the result under this name, also with --workers")
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    counts = sorted({1, *(args.workers or [1 << k for k in range(8) if 1 << k <= cores])})

    bench = Bench(args.into or "weak-scaling")
    metrics = [
        Metric("samples per second", "1/s", "higher", lambda f: f["samples_s"]),
        Metric("efficiency", "fraction", "higher", lambda f: f["efficiency"]),
        Metric("exposed communication", "fraction", "lower", lambda f: f.get("exposed_comm")),
    ]
    limits = machine_limits(counts)
    bench.facts = {"limits": limits}
    for batch in args.batches:
        scaling = Scaling(batch, args.steps)
        for n in counts:
            runners = {OURS: lambda n=n: scaling.ours(n), DDP: lambda n=n: scaling.ddp(n)}
            bench.measure(case_name(batch, n), runners, metrics, args.repeats)
        together = [copies(batch, n, args.steps) for n in counts]
        rows = loss_of(bench, scaling, counts, together, limits)
        bench.facts[f"B{batch}"] = {"efficiency": rows, "copies": together}
    code = bench.finish(keep=not args.workers or bool(args.into))
    for batch in args.batches:
        if rows := bench.facts[f"B{batch}"]["efficiency"]:
            print_rows(f"where efficiency goes with B{batch} (1 is none lost)", rows)
    return code


if __name__ == "__main__":
    sys.exit(main())
