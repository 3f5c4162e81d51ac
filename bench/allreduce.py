"""All-reduce between ranks of one host: ours, OpenMPI and PyTorch's Gloo, from 4 KiB to 256 MiB.

Every turn of a runner is one start of its processes that measures all sizes; turns are interleaved. Compared are bus
bandwidth (size / time * 2(N-1)/N, the traffic that any algorithm needs at least) and, for the smallest size, the time
of a call. The floor is the bare movement that any sum in place over shared memory needs, made by the same processes
right after our sums of that size (src/cli/movement_floor.h). The last cases compare our canonical order, which gives
the same bits on any number of ranks, with our fast order, which does not: the cost of the promise.
"""

import argparse
import os
import subprocess
import sys

from harness import LOCKSTEP, OURS, PEERS_PYTHON, ROOT, Bench, Metric, RunFailed, debian_version, run_json

SIZES = [4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20]
MPI_PROGRAM = ROOT / "build" / "peers-mpi" / "mpi_allreduce"


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


class Sweep:
    """One program over all sizes; its n-th run serves the n-th turn of every size."""

    def __init__(self, run):
        self.run = run
        self.runs = []

    def figures(self, size):
        turn = 0

        def one():
            nonlocal turn
            if turn == len(self.runs):
                self.runs.append({row["bytes"]: row for row in self.run()["sizes"]})
            turn += 1
            return self.runs[turn - 1][size]

        return one


def ours(ranks, seconds, order="canonical", leaves=None, transport=None, floor=False):
    command = [LOCKSTEP, "bench", "allreduce", "--workers", ranks, "--sizes", ",".join(map(str, SIZES))]
    command += ["--order", order, "--seconds", seconds, "--json"]
    command += ["--leaves", leaves] if leaves else []
    command += ["--transport", transport] if transport else []
    command += ["--floor"] if floor and transport != "ucx" else []
    return Sweep(lambda: run_json(command))


def mpi(ranks, seconds):
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", ranks, MPI_PROGRAM, seconds, *SIZES]
    return Sweep(lambda: run_json(command))


def gloo(ranks, seconds):
    script = ROOT / "bench" / "peers" / "gloo_allreduce.py"
    return Sweep(lambda: run_json([PEERS_PYTHON, script, ranks, seconds, *SIZES], env={"OMP_NUM_THREADS": "1"}))


def build_mpi():
    MPI_PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    source = ROOT / "bench" / "peers" / "mpi_allreduce.c"
    if MPI_PROGRAM.exists() and MPI_PROGRAM.stat().st_mtime >= source.stat().st_mtime:
        return  # so that a machine without mpicc can be brought one
    try:
        subprocess.run(["mpicc", "-O3", "-march=native", "-o", MPI_PROGRAM, source], check=True)
    except (OSError, subprocess.CalledProcessError) as reason:
        raise RunFailed(f"mpicc: {reason}; the packages are libopenmpi-dev and openmpi-bin")


def bandwidth():
    return Metric("bus bandwidth", "GB/s", "higher", lambda f: f["busbw_gb_s"], lambda f: f.get("floor_busbw_gb_s"))


def call_time():
    return Metric("time of a call", "us", "lower", lambda f: f["time_us"], lambda f: f.get("floor_us"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", help="default: 2, 4, ... up to the processors here")
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each size in a turn")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each runner")
    parser.add_argument("--transport", help="ours; the result of another than the default is printed, not kept")
    parser.add_argument("--into", help="keep the result under this name, also with --ranks or --transport")
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    ranks = args.ranks or [1 << k for k in range(1, 8) if 1 << k <= max(cores, 2)]

    bench = Bench(args.into or "allreduce")
    bench.versions["openmpi"] = debian_version("openmpi-bin")
    build_mpi()
    for n in ranks:
        own = ours(n, args.seconds, transport=args.transport, floor=True)
        sweeps = {OURS: own, "openmpi": mpi(n, args.seconds), "gloo": gloo(n, args.seconds)}
        for size in SIZES:
            metrics = [bandwidth()] if size >= 1 << 20 else [call_time(), bandwidth()]
            runners = {name: sweep.figures(size) for name, sweep in sweeps.items()}
            bench.measure(f"{n} ranks {size_text(size)}", runners, metrics, args.repeats)
    for n, leaves in [(n, 16) for n in (args.ranks or [*ranks, 3]) if n <= 16]:
        sweeps = {
            OURS: ours(n, args.seconds, leaves=leaves, transport=args.transport),
            "fast order": ours(n, args.seconds, "fast", leaves, args.transport),
        }
        for size in (size for size in SIZES if size >= 1 << 20):
            runners = {name: sweep.figures(size) for name, sweep in sweeps.items()}
            bench.measure(f"{n} ranks {leaves} leaves {size_text(size)}", runners, [bandwidth()], args.repeats)
    return bench.finish(keep=bool(args.into) or not (args.ranks or args.transport))


if __name__ == "__main__":
    sys.exit(main())
