"""Reduction Servers: an all-reduce through servers of twice the workers' rate, beside the same one directly.

The hosts are network namespaces of this machine whose links are shaped (tests/hosts/hosts): workers with one rate, servers
with a multiple of it. Through servers every host sends its sums once and gets the root once, so the bound is size / rate,
where directly it is 2(N-1)/N of that. The rate is low enough that the cores of this machine carry the traffic of all hosts
at once; results are checked bit by bit by the program itself.

The training case is a gpt whose gradients take twice as long on the wire as computing does.
"""

import argparse
import statistics
import sys

from allreduce import Sweep, size_text
from harness import LOCKSTEP, OURS, Bench, Metric, debian_version, run_json
from probes.box import Links, workers, workers_and_servers
from probes.train_job import WARM_UP, step_figures, train_job

MODEL = {"family": "gpt", "layers": 4, "dim": 256, "heads": 4, "vocab": 256, "seq": 64, "dropout": 0.0}


def command(sizes, seconds):
    allreduce = [LOCKSTEP, "bench", "allreduce", "--transport", "ucx", "--sizes", ",".join(map(str, sizes))]
    return [*allreduce, "--seconds", seconds, "--json"]


def through_servers(hosts, servers, links, args):
    box = links.box(hosts + servers, faster=servers, times=args.times, timeout=900)
    call = [*command(args.sizes, args.seconds), "--servers", servers]
    return Sweep(lambda: run_json([*box, *workers_and_servers(hosts, LOCKSTEP, call)]))


def directly(hosts, links, args):
    return Sweep(lambda: run_json([*links.box(hosts, timeout=900), *workers(hosts), *command(args.sizes, args.seconds)]))


def measure_sums(bench, hosts, servers, links, args):
    rate = links.bits_per_second
    sweeps = {OURS: through_servers(hosts, servers, links, args), "directly": directly(hosts, links, args)}
    title = f"{hosts} hosts of {rate / 1e6:g} Mbit/s, {servers} servers of {args.times:g} times the rate"
    for size in args.sizes:
        bound = size * 8 / rate
        metrics = [
            Metric("time of a call", "ms", "lower", lambda f: f["time_us"] / 1e3, lambda f, b=bound: b * 1e3),
            Metric("times size / rate", "", "lower", lambda f, b=bound: f["time_us"] / 1e6 / b, lambda f: 1),
        ]
        runners = {name: sweep.figures(size) for name, sweep in sweeps.items()}
        bench.measure(f"{title}, {size_text(size)}", runners, metrics, args.repeats)


# ---- training --------------------------------------------------------------------------------------------------------


def gpt_job(hosts, steps):
    return {
        "name": "served",
        "model": MODEL,
        "train": {
            "steps": WARM_UP + steps,
            "global_batch": 4 * hosts,
            "microbatch": 4,
            "optimizer": {"name": "adamw"},
            "lr": {"base": 1e-3},
        },
        "strategy": {"threads": 1, "leaves": hosts, "transport": "ucx"},
    }


def train(hosts, servers, links, args, settings):
    box = links.box(hosts + servers, faster=servers, times=args.times, timeout=900)
    # What follows the box is the worker's command: train_job puts the program and its arguments there.
    return train_job(gpt_job(hosts, args.steps), settings, [*box, *workers_and_servers(hosts, LOCKSTEP, [])], [])


def measure_training(bench, hosts, servers, args):
    alone, summary = train(hosts, 0, Links(10e9), args, ["strategy.reduce.via=none"])
    compute = statistics.median(step["time"]["compute"] for step in alone)
    # Directly a host sends 2(N-1)/N of the gradients.
    directly = 2 * (hosts - 1) / hosts * 4 * summary["parameters"] * 8
    links = Links(directly / (2 * compute))
    served = ["strategy.reduce.via=server", f"strategy.reduce.servers={servers}"]
    runners = {
        OURS: lambda: step_figures(train(hosts, servers, links, args, served)[0]),
        "directly": lambda: step_figures(train(hosts, 0, links, args, [])[0]),
    }
    title = f"a gpt on {hosts} hosts whose gradients take twice as long as computing, {servers} servers"
    metrics = [
        Metric("time of a step", "ms", "lower", lambda f: f["step_ms"]),
        Metric("exposed share of a step", "fraction", "lower", lambda f: f["exposed_comm"]),
    ]
    bench.measure(title, runners, metrics, args.repeats)
    bench.facts.setdefault("training", {})[title] = {"link_mbit_s": links.bits_per_second / 1e6, "compute_ms": 1e3 * compute}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, nargs="*", default=[4, 8], help="that have a worker each")
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--rate", type=float, default=0.2, help="of the workers' links, in Gbit/s")
    parser.add_argument("--times", type=float, default=2, help="the rate of the servers' links, in those of workers")
    parser.add_argument("--sizes", type=int, nargs="*", default=[64, 256], help="MiB")
    parser.add_argument("--seconds", type=float, default=2, help="time for each size in a turn")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each runner")
    parser.add_argument("--steps", type=int, default=8, help="steps that are timed in a turn of the training case")
    parser.add_argument("--only", choices=["sums", "training"])
    parser.add_argument("--into", default="reduction-server", help="keep the result under this name")
    args = parser.parse_args()
    args.sizes = [size << 20 for size in args.sizes]

    bench = Bench(args.into)
    bench.versions |= {"ucx": debian_version("libucx0")}
    for hosts in args.hosts:
        if args.only != "training":
            measure_sums(bench, hosts, args.servers, Links(args.rate * 1e9), args)
        if args.only != "sums":
            measure_training(bench, hosts, args.servers, args)
    bench.take_others({one["case"] for one in bench.cases})
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
