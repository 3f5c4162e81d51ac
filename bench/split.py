"""A llama whose state is split between workers, beside PyTorch: ZeRO beside FSDP2, pipelines beside torch.distributed.pipelining,
all on this machine's processors, one thread a worker, PyTorch with Gloo.

Workers of ours are joined as if each had a host of its own (strategy.transport: ucx), which is what Gloo does too: nobody reads
another's memory. The same model, microbatches and workers, fp32, AdamW with clipping. Compared are samples per second, and the
bytes that all workers send in a step beside the formula of docs/splitting.md:

    ZeRO-2   (N-1) (b Mg + Mw)       b = V/N leaves a worker, each of one microbatch
    ZeRO-3   (N-1) (b Mg + 2 m Mw - m Mo)   Mo is gathered once for forward and backward: the last block with
                                            the head, which backward begins with, and the table of tokens
    stages   2 (p-1) m A             A the activations between two layers, of one microbatch

Gloo has no reduce-scatter: it makes N all-reduces, so FSDP2 on it sends 4 M (N-1) where the formula of ZeRO-3 says 3 M (N-1).
What is sent is counted on the loopback interface of a network namespace, headers included: of ours as the difference of two
runs of different lengths.

Two more tables have no peer. Bubbles: the share of a step that the first stage waits, beside the formula, with stages of equal
work, each on a processor of its own. Exposed communication: ZeRO-3 beside ZeRO-0 on hosts whose links make communication of the
latter half as long as computing.
"""

import argparse
import functools
import shutil
import statistics
import sys
import tempfile

from harness import OURS, PEERS_PYTHON, ROOT, Bench, Metric, RunFailed, run_json
from probes.box import PORT, Links
from probes.train_job import WARM_UP, step_figures, train_job

MODEL = {"layers": 8, "dim": 256, "heads": 4, "kv_heads": 4, "hidden": 688, "vocab": 256, "seq": 128}
BATCH = 4  # samples of a microbatch
MICROBATCHES = 8  # of a pipeline
PARTS = ["zero", "pipeline", "bubbles", "exposed"]
SCHEDULES = ["gpipe", "1f1b", "interleaved", "zero-bubble"]
CHUNKS = {"interleaved": 2}  # stages of a worker


# Stages of equal work: a head over 32 tokens is 0.2 % of the last one.
EVEN = {"layers": 8, "dim": 384, "heads": 6, "kv_heads": 6, "hidden": 1024, "vocab": 32, "seq": 128}
# As many blocks as a model has that needs ZeRO-3: the first is gathered before anything is computed, so it should be small.
DEEP = {**MODEL, "layers": 24}
DEEP_BATCH = 32  # computing that leaves two cores time for what travels


def job(steps, microbatches, leaves, strategy, model=MODEL, batch=BATCH):
    return {
        "name": "split",
        "model": {"family": "llama", **model},
        "train": {
            "steps": WARM_UP + steps,
            "global_batch": batch * microbatches,
            "microbatch": batch,
            "optimizer": {"name": "adamw", "betas": [0.9, 0.95], "weight_decay": 0.1},
            "lr": {"base": 1e-3},
            "precision": "fp32",
            "clip_norm": 1.0,
        },
        "strategy": {"threads": 1, "leaves": leaves, "transport": "ucx", **strategy},
    }


def counted(steps, microbatches, leaves, strategy):
    """What all workers send in a run of so many steps, its start and end included."""
    with tempfile.NamedTemporaryFile("r", prefix="split.") as counts:
        after = f'ip link set lo up; "$@"; code=$?; cat /proc/net/dev >{counts.name}; exit $code'
        train_job(job(steps, microbatches, leaves, strategy), before=["unshare", "--net", "--", "bash", "-c", after, "alone"])
        for line in counts:
            name, _, values = line.partition(":")
            if name.strip() == "lo":
                return int(values.split()[8])
    raise RunFailed("there is no loopback interface")


@functools.cache
def sent(microbatches, leaves, strategy):
    """Of one step: the difference of two runs."""
    few, many = (counted(steps, microbatches, leaves, dict(strategy)) for steps in (1, 6))
    return (many - few) / 5


def ours(args, microbatches, leaves, strategy):
    steps, summary = train_job(job(args.steps, microbatches, leaves, strategy))
    every = sent(microbatches, leaves, tuple(strategy.items()))
    return {**step_figures(steps), "sent_bytes": every, "parameters": summary["parameters"]}


def torch(args, how, workers, microbatches):
    command = [PEERS_PYTHON, ROOT / "bench" / "peers" / "torch_split.py", "--how", how, "--workers", workers]
    for name, value in {**MODEL, "batch": BATCH, "microbatches": microbatches, "steps": args.steps, "warmup": WARM_UP}.items():
        command += [f"--{name.replace('_', '-')}", value]
    # In a network of its own, so that what is counted there is its own too.
    alone = ["unshare", "--net", "--", "bash", "-c", 'ip link set lo up && exec "$@"', "alone"]
    if not shutil.which("unshare"):
        raise RunFailed("unshare: there is no such program")
    return run_json([*alone, *command], env={"OMP_NUM_THREADS": "1"})


def metrics(formula):
    return [
        Metric("samples per second", "1/s", "higher", lambda f: f["samples_s"]),
        Metric("sent in a step", "MB", "lower", lambda f: f["sent_bytes"] / 1e6, lambda f: formula(f) / 1e6),
        Metric("exposed communication", "fraction", "lower", lambda f: f.get("exposed_comm")),
    ]


def gathered_once():
    """Parameters that ZeRO-3 gathers once a microbatch."""
    dim, vocab = MODEL["dim"], MODEL["vocab"]
    block = 4 * dim * dim + 3 * dim * MODEL["hidden"] + 2 * dim
    return block + dim + vocab * dim + vocab * dim


def measure_zero(bench, args, workers):
    """One microbatch a worker and step."""
    for stage in args.zero:
        how = {2: "fsdp-kept", 3: "fsdp"}[stage]
        weights, once = (1, 0) if stage == 2 else (2, gathered_once())
        bench.measure(
            f"ZeRO-{stage}, {workers} workers",
            {
                OURS: lambda stage=stage: ours(args, workers, workers, {"workers": workers, "zero": stage}),
                f"torch {how}": lambda how=how: torch(args, how, workers, 1),
            },
            metrics(lambda f, w=weights, o=once: (workers - 1) * 4 * ((1 + w) * f["parameters"] - o)),
            args.repeats,
        )


def measure_pipeline(bench, args, workers):
    sent = 2 * (workers - 1) * MICROBATCHES * 4 * BATCH * MODEL["seq"] * MODEL["dim"]
    for schedule in args.schedules:
        chunks = CHUNKS.get(schedule, 1)
        strategy = {"workers": workers, "pipeline": workers, "schedule": schedule, "chunks": chunks}
        runners = {OURS: lambda strategy=strategy: ours(args, MICROBATCHES, 1, strategy)}
        if schedule != "zero-bubble":
            runners[f"torch {schedule}"] = lambda how=schedule: torch(args, how, workers, MICROBATCHES)
        hops = (workers * chunks - 1) / (workers - 1)
        formula = lambda f, hops=hops: hops * sent
        bench.measure(f"pipeline {schedule}, {workers} stages", runners, metrics(formula), args.repeats)


def idle_of(schedule, stages, times):
    """The share of a step that the first stage's rank is idle, by the times that a microbatch took in the last: (p - 1)(F + B)
    for gpipe and 1f1b, a chunk's part of it for interleaved; zero-bubble with a commit at the step's end leaves (p - 1)(F + I - W)."""
    forward, inputs, weights = (times[-1][name] for name in ("forward_ms", "input_gradients_ms", "weight_gradients_ms"))
    backward = times[-1]["backward_ms"] + inputs + weights
    idle = (stages - 1) * (forward + inputs - weights if schedule == "zero-bubble" else forward + backward)
    return idle / (MICROBATCHES * CHUNKS.get(schedule, 1) * (forward + backward) + idle)


def measure_bubbles(bench, args, stages):
    for schedule in args.schedules:
        strategy = {"workers": stages, "pipeline": stages, "schedule": schedule, "chunks": CHUNKS.get(schedule, 1)}
        strategy["transport"] = "auto"

        def run(strategy=strategy):
            data = {"train": {"format": "synthetic", "samples": 10000}}
            steps, summary = train_job({**job(args.steps, MICROBATCHES, 1, strategy, EVEN), "data": data})
            # The median, since a step in which something else ran on a core says nothing about the schedule.
            idle = statistics.median(one["time"]["exposed_comm"] / one["seconds"] for one in steps)
            return {**step_figures(steps), "idle": idle, "stages": summary["stages"]}

        figures = [
            Metric(
                "idle share of the first stage",
                "fraction",
                "lower",
                lambda f: f["idle"],
                lambda f, how=schedule: idle_of(how, stages, f["stages"]),
            ),
            Metric("samples per second", "1/s", "higher", lambda f: f["samples_s"]),
        ]
        bench.measure(f"bubble, {schedule}, {stages} stages of {MICROBATCHES} microbatches", {OURS: run}, figures, args.repeats)


def measure_exposed(bench, args, hosts):
    nodes = ["--nnodes", hosts, "--node-rank", "{host}", "--nproc-per-node", 1, "--master-addr", "{master}", "--master-port", PORT]

    def train(links, strategy):
        token = ["env", "LOCKSTEP_TOKEN=0123456789abcdef0123456789abcdef"]
        return train_job(job(args.steps, hosts, hosts, strategy, DEEP, DEEP_BATCH), (), [*links.box(hosts), *token], nodes)

    alone, summary = train(Links(10e9), {"reduce": {"via": "none"}})
    compute = statistics.median(one["time"]["compute"] for one in alone)
    links = Links(2 * links_bits(hosts, summary["parameters"]) / compute)

    def run(zero):
        steps = train(links, {"zero": zero})[0]
        exposed = statistics.median(one["time"]["exposed_comm"] for one in steps)
        return {**step_figures(steps), "exposed_ms": 1e3 * exposed}

    runners = {OURS: lambda: run(3), "zero 0": lambda: run(0)}
    figures = [
        Metric("exposed communication of a step", "ms", "lower", lambda f: f["exposed_ms"]),
        Metric("samples per second", "1/s", "higher", lambda f: f["samples_s"]),
    ]
    title = f"ZeRO-3 on {hosts} hosts whose links take half of computing for ZeRO-0"
    bench.measure(title, runners, figures, args.repeats)
    bench.facts.setdefault("links", {})[title] = {"mbit_s": links.bits_per_second / 1e6, "compute_ms": 1e3 * compute}


def links_bits(hosts, parameters):
    """What a host sends in a step without ZeRO."""
    return 2 * (hosts - 1) / hosts * 4 * parameters * 8


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--zero", type=int, nargs="*", default=[2, 3], choices=[2, 3], help="stages of ZeRO")
    parser.add_argument("--schedules", nargs="*", default=SCHEDULES, choices=SCHEDULES, help="of pipelines")
    parser.add_argument("--steps", type=int, default=10, help="steps that are timed in a turn")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each")
    parser.add_argument("--only", nargs="*", default=PARTS, choices=PARTS, help="of what is measured")
    parser.add_argument("--into", default="split", help="keep the result under this name")
    args = parser.parse_args()
    bench = Bench(args.into)
    for workers in args.workers:
        if "zero" in args.only:
            measure_zero(bench, args, workers)
        if "pipeline" in args.only:
            measure_pipeline(bench, args, workers)
    if "bubbles" in args.only:
        measure_bubbles(bench, args, args.workers[0])
    if "exposed" in args.only:
        measure_exposed(bench, args, args.workers[0])
    bench.take_others({one["case"] for one in bench.cases})
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
