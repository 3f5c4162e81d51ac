"""Between hosts: all-reduce on shaped links beside OpenMPI, and how much of it a training step hides.

The hosts are network namespaces of this machine whose links are shaped to a rate (tests/hosts/hosts). The floor of an
all-reduce is its wire bound 2(N-1)/N * size / rate; that counts no headers, of which packets of 1500 bytes carry 4.6 %.
OpenMPI runs as it comes, and with the ring that its users may ask for. What plain sockets take for the same bytes is in
the facts.

The overlap case trains a gpt on two hosts. The same job without any exchange (strategy.reduce.via: none) says what
computing takes; links are then shaped so that the gradients take half of that time on the wire. Compared are the share of
a step that the job itself reports as exposed communication, and the one that the two step times tell.
"""

import argparse
import statistics
import sys

from allreduce import MPI_PROGRAM, Sweep, build_mpi, size_text
from harness import LOCKSTEP, OURS, ROOT, Bench, Metric, debian_version, run_json
from probes.box import PORT, Links, mpirun, workers
from probes.train_job import WARM_UP, step_figures, train_job

SIZES = [1 << 20, 16 << 20, 64 << 20]
RING = ["--mca", "coll_tuned_use_dynamic_rules", 1, "--mca", "coll_tuned_allreduce_algorithm", 4]
MODEL = {"family": "gpt", "layers": 6, "dim": 256, "heads": 4, "vocab": 256, "seq": 128, "dropout": 0.0}
# Samples of a microbatch in the overlap case. The hosts share this machine's cores with the work of the network itself
# (13 % of a step with 4 samples on two cores, without any waiting): more samples make that a smaller part.
BATCH = 32


def ours(hosts, links, seconds):
    command = [LOCKSTEP, "bench", "allreduce", "--transport", "ucx", "--sizes", ",".join(map(str, SIZES))]
    command += ["--seconds", seconds, "--json"]
    return Sweep(lambda: run_json([*links.box(hosts), *workers(hosts), *command]))


def mpi(hosts, links, seconds, options=()):
    command = [*mpirun(hosts, *options), MPI_PROGRAM, seconds, *SIZES]
    return Sweep(lambda: run_json([*links.box(hosts, first_only=True), *command]))


def bytes_alone(hosts, links):
    """Times the wire bound, by size."""
    addresses = [f"10.77.0.{h + 1}" for h in range(hosts)]
    command = ["python3", ROOT / "bench" / "probes" / "tcp_ring.py", "{host}", hosts, *addresses, *SIZES]
    rows = run_json([*links.box(hosts), *command])["sizes"]
    return {size_text(r["bytes"]): r["time_us"] / 1e6 / links.wire_seconds(hosts, r["bytes"]) for r in rows}


def measure_sums(bench, hosts, links, args):
    sweeps = {
        OURS: ours(hosts, links, args.seconds),
        "openmpi": mpi(hosts, links, args.seconds),
        "openmpi ring": mpi(hosts, links, args.seconds, RING),
    }
    title = f"{hosts} hosts, {links.bits_per_second / 1e9:g} Gbit/s, mtu {links.mtu}"
    for size in SIZES:
        bound = links.wire_seconds(hosts, size)
        metrics = [
            Metric("time of a call", "ms", "lower", lambda f: f["time_us"] / 1e3, lambda f: bound * 1e3),
            Metric("times the wire bound", "", "lower", lambda f: f["time_us"] / 1e6 / bound, lambda f: 1),
        ]
        runners = {name: sweep.figures(size) for name, sweep in sweeps.items()}
        bench.measure(f"{title}, {size_text(size)}", runners, metrics, args.repeats)
    bench.facts.setdefault("plain_sockets_times_the_wire_bound", {})[title] = bytes_alone(hosts, links)


# ---- overlap ---------------------------------------------------------------------------------------------------------


def gpt_job(steps, microbatches):
    return {
        "name": "overlap",
        "model": MODEL,
        "train": {
            "steps": WARM_UP + steps,
            "global_batch": 2 * BATCH * microbatches,
            "microbatch": BATCH,
            "optimizer": {"name": "adamw", "betas": [0.9, 0.95], "weight_decay": 0.1},
            "lr": {"base": 1e-3},
            "precision": "fp32",
            "clip_norm": 1.0,
        },
        "strategy": {"threads": 1, "leaves": 2},
    }


def train(links, args, microbatches, exchange):
    """The steps after the warm-up, and the summary."""
    nodes = ["--nnodes", 2, "--node-rank", "{host}", "--nproc-per-node", 1, "--master-addr", "{master}"]
    nodes += ["--master-port", PORT]
    token = ["env", "LOCKSTEP_TOKEN=0123456789abcdef0123456789abcdef"]
    settings = [] if exchange else ["strategy.reduce.via=none"]
    return train_job(gpt_job(args.steps, microbatches), settings, [*links.box(2), *token], nodes)


def median_of(steps, value):
    return statistics.median(map(value, steps))


def links_for(args, microbatches):
    """Links on which the gradients take half as long as computing: two hosts send 2(2-1)/2 of them."""
    steps, summary = train(Links(10e9), args, microbatches, exchange=False)
    return Links(4 * summary["parameters"] * 8 / (median_of(steps, lambda s: s["time"]["compute"]) / 2))


def measure_overlap(bench, args, microbatches):
    links = links_for(args, microbatches)
    together, alone = [], []
    title = f"gpt 6x256 on 2 hosts, {microbatches} x {BATCH} samples a worker"

    def turn():
        steps, summary = train(links, args, microbatches, exchange=True)
        together.extend(steps)
        alone.extend(train(links, args, microbatches, exchange=False)[0])
        return {**step_figures(steps), "bucket": summary["bucket_bytes"]}

    metrics = [
        Metric("exposed share of a step", "fraction", "lower", lambda f: f["exposed_comm"]),
        Metric("time of a step", "ms", "lower", lambda f: f["step_ms"]),
        Metric("bucket", "KiB", "lower", lambda f: f["bucket"] / 1024),
    ]
    bench.measure(title, {OURS: turn}, metrics, args.repeats)
    if not alone:
        return
    with_ms, without_ms = (1e3 * median_of(steps, lambda s: s["seconds"]) for steps in (together, alone))
    reported = median_of(together, lambda s: s["time"]["exposed_comm"] / s["seconds"])
    bench.facts.setdefault("overlap", {})[title] = {
        "link_gbit_s": links.bits_per_second / 1e9,
        "step_ms": with_ms,
        "step_without_exchange_ms": without_ms,
        "exposed_reported": reported,
        "exposed_by_difference": 1 - without_ms / with_ms,
    }
    print(f"{title}: exposed {reported:.3f} of a step by its own account, {1 - without_ms / with_ms:.3f} by difference")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, nargs="*", default=[2, 3, 4])
    parser.add_argument("--rate", type=float, default=1, help="of the links, in Gbit/s")
    parser.add_argument("--mtu", type=int, nargs="*", default=[1500, 9000])
    parser.add_argument("--seconds", type=float, default=2, help="time for each size in a turn")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each runner")
    parser.add_argument("--steps", type=int, default=12, help="steps that are timed in a turn of the overlap case")
    parser.add_argument("--microbatches", type=int, nargs="*", default=[1], help="of a worker in the overlap case")
    parser.add_argument("--only", choices=["sums", "overlap"])
    parser.add_argument("--into", default="hosts", help="keep the result under this name")
    args = parser.parse_args()

    bench = Bench(args.into)
    bench.versions |= {"openmpi": debian_version("openmpi-bin"), "ucx": debian_version("libucx0")}
    if args.only != "overlap":
        build_mpi()
        for mtu in args.mtu:
            for hosts in args.hosts:
                measure_sums(bench, hosts, Links(args.rate * 1e9, mtu), args)
    if args.only != "sums":
        for microbatches in args.microbatches:
            measure_overlap(bench, args, microbatches)
    return bench.finish(keep=not args.only or args.into != "hosts")


if __name__ == "__main__":
    sys.exit(main())
