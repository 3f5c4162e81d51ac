"""One training step on the CPU: ours, PyTorch eager and torch.compile, for models from tiny to the size of GPT-2.

A step is forward, backward, clipping of the gradient norm and AdamW, in fp32, with the same shapes and thread count for
everyone. Each turn is a process of its own that warms up and reports the median of its steps. Images are given to PyTorch
in both of its layouts, and to torch.compile in the one that was faster without it. A mode of PyTorch that is clearly not its
best in the first turn has that turn only.

Compared are the time of a step; the process's peak memory, with and without what the libraries take before there is a model
(an import of torch; our program with its libraries loaded); and the share of the step that the bare matrix products of the
model would take, the GEMM floor: every product as one multi-threaded call of oneDNN, MKL or PyTorch's newer oneDNN, the
fastest of them, with all data in place. 1 would mean that nothing else costs anything.

`--baseline PROGRAM` runs another build of ours by turns with this one and fails where this one is slower by more than 2 %.
All steps of all turns count then, and `--modes` without names leaves PyTorch out.
"""

import argparse
import json
import os
import statistics
import sys

from harness import BEFORE, LOCKSTEP, OURS, PEERS_PYTHON, ROOT, Bench, Metric, run_json

MIB = 1 << 20
SLOWER_ALLOWED = 1.02  # than the baseline
CONTENDER = 1.05  # a mode that takes more than this many times the best one's time is not measured again

# name -> (flags, steps that are timed in one turn, flags of ours alone). The largest model of ours recomputes what is cheap
# to (norms, activations), which PyTorch's autograd has no switch for: the same maths and bits, less memory.
CASES = {
    "gpt 12x768 B4 T256": (
        "gpt --layers 12 --dim 768 --heads 12 --vocab 50304 --batch 4 --seq 256 --warmup 1",
        3,
        "--recompute cheap",
    ),
    "bert-base B8 T128": ("encoder --layers 12 --dim 768 --heads 12 --vocab 30522 --batch 8 --seq 128 --warmup 1", 3),
    "gpt 6x256 B16 T256": ("gpt --layers 6 --dim 256 --heads 8 --vocab 256 --batch 16 --seq 256", 8),
    "llama 6x256 B16 T256": ("llama --layers 6 --dim 256 --heads 8 --kv-heads 2 --hidden 768 --vocab 256 --batch 16 --seq 256", 8),
    "gpt 4x64 B8 T64": ("gpt --layers 4 --dim 64 --heads 4 --vocab 256 --batch 8 --seq 64", 100),
    "tabular 26 tables B2048": ("tabular --tables 26 --rows 100000 --dim 32 --batch 2048", 40),
    "resnet18 64x64 B16": ("resnet18 --image 64 --batch 16", 20),
}
PLAIN, CHANNELS_LAST = "channels first", "channels last"  # layouts of images

# The same steps on models of no size, to try the bench.
QUICK_CASES = {
    "gpt 2x32 B2 T16": ("gpt --layers 2 --dim 32 --heads 2 --vocab 256 --batch 2 --seq 16", 3, "--recompute cheap"),
    "llama 2x32 B2 T16": ("llama --layers 2 --dim 32 --heads 4 --kv-heads 2 --hidden 64 --vocab 256 --batch 2 --seq 16", 3),
    "encoder 2x32 B2 T16": ("encoder --layers 2 --dim 32 --heads 2 --vocab 256 --batch 2 --seq 16", 3),
    "tabular 4 tables B64": ("tabular --tables 4 --rows 1000 --dim 16 --batch 64", 3),
    "resnet18 32x32 B2": ("resnet18 --image 32 --batch 2", 3),
}


class Case:
    def __init__(self, name, what, args):
        self.name, self.args = name, args
        flags, steps, *own = what
        self.flags = ["--model", *flags.split(), "--threads", args.threads, "--steps", steps, "--json"]
        self.own = " ".join(own).split()
        self.floor = None  # milliseconds
        self.libraries = {}  # of the floor, by library
        self.eager_ms = {}  # by layout

    def ours(self, program, *more):
        return run_json([program, "bench", "step", *self.flags, *self.own, *more])

    def ours_with_floor(self):
        """The floor is measured once, after the steps of the first turn; where there are no peers, not at all."""
        if not self.args.modes:
            return self.ours(LOCKSTEP)
        if self.floor is None:
            figures = self.ours(LOCKSTEP, "--floor")
            self.floor = self.least(figures["products"])
        else:
            figures = self.ours(LOCKSTEP)
        return {**figures, "floor_ms": self.floor}

    def least(self, products):
        """Every product as its fastest library runs it."""
        script = ROOT / "bench" / "probes" / "torch_products.py"
        command = [PEERS_PYTHON, script, "--threads", self.args.threads]
        others = run_json(command, env=self.threads(), given=json.dumps(products))["ms"]
        for product, other in zip(products, others):
            library, ms = min(("oneDNN", product["ms"]), ("PyTorch's libraries", other), key=lambda one: one[1])
            self.libraries[library] = self.libraries.get(library, 0) + product["count"] * ms
        return sum(self.libraries.values())

    def eager(self, layout):
        figures = self.torch("eager", layout)
        self.eager_ms.setdefault(layout, figures["step_ms"])
        return figures

    def compiled(self):
        return self.torch("compile", min(self.eager_ms, key=self.eager_ms.get, default=PLAIN))

    def torch(self, mode, layout):
        script = ROOT / "bench" / "peers" / "torch_step.py"
        more = ["--channels-last"] if layout == CHANNELS_LAST else []
        return run_json([PEERS_PYTHON, script, *self.flags, "--mode", mode, *more], env=self.threads())

    def threads(self):
        """PyTorch gets the thread count through the environment as well: OpenMP reads it before any flag is parsed. What
        torch.compile made once is kept under build/."""
        cache = ROOT / "build" / "bench-cpu-step" / "inductor"
        return {"OMP_NUM_THREADS": str(self.args.threads), "TORCHINDUCTOR_CACHE_DIR": str(cache)}

    def runners(self):
        runners = {OURS: self.ours_with_floor}
        if self.args.baseline:
            runners[BEFORE] = lambda: self.ours(self.args.baseline)
        if "eager" in self.args.modes:
            runners["torch eager"] = lambda: self.eager(PLAIN)
            if "resnet" in self.name:
                runners["torch eager, channels last"] = lambda: self.eager(CHANNELS_LAST)
        if "compile" in self.args.modes:
            runners["torch compile"] = self.compiled
        return runners


def contenders(figures):
    times = {name: one["step_ms"] for name, one in figures.items() if name not in (OURS, BEFORE)}
    return [name for name, ms in times.items() if ms <= CONTENDER * min(times.values())]


def metrics(case):
    def memory(value):
        return lambda f: value(f) / MIB if "library_rss_bytes" in f else None

    return [
        Metric("step time", "ms", "lower", lambda f: f["step_ms"], floor=lambda f: f.get("floor_ms")),
        Metric("peak memory", "MiB", "lower", lambda f: f["peak_rss_bytes"] / MIB),
        Metric("libraries alone", "MiB", "lower", memory(lambda f: f["library_rss_bytes"])),
        Metric("peak memory without libraries", "MiB", "lower", memory(lambda f: f["peak_rss_bytes"] - f["library_rss_bytes"])),
        # Everyone's step against the one floor, so that the shares can be compared.
        Metric("share of GEMM floor", "fraction", "higher", lambda f: case.floor / f["step_ms"] if case.floor else None),
    ]


def measure(bench, case, repeats):
    steps = {OURS: [], BEFORE: []}
    hashes = {OURS: set(), BEFORE: set()}

    def noted(name, runner):
        figures = runner()
        if name in steps:
            # A step's share of what was put off belongs to its time.
            steps[name] += [ms + figures["deferred_ms"] for ms in figures["step_ms_all"]]
            hashes[name].add(figures["weights_sha256"])
        return figures

    runners = {name: lambda name=name, runner=runner: noted(name, runner) for name, runner in case.runners().items()}
    bench.measure(case.name, runners, metrics(case), repeats, contenders)
    if case.libraries:
        bench.facts.setdefault("floor by library, ms", {})[case.name] = case.libraries
    if len(case.eager_ms) > 1:
        bench.facts.setdefault("first turn of torch eager by layout, ms", {})[case.name] = case.eager_ms
    if not (steps[OURS] and steps[BEFORE]):
        return
    times = {"median": statistics.median, "fastest": min}
    compared = {name: of(steps[OURS]) / of(steps[BEFORE]) for name, of in times.items()}
    compared |= {"steps": len(steps[OURS]), "same weights": hashes[OURS] == hashes[BEFORE]}
    bench.facts.setdefault("time over that of the baseline", {})[case.name] = compared


def compare_with_baseline(bench):
    """Prints this build beside the other; whether it is slow enough anywhere to fail."""
    slower = []
    print("\ntime of a step over the baseline's:")
    for name, one in bench.facts.get("time over that of the baseline", {}).items():
        same = "same weights" if one["same weights"] else "OTHER WEIGHTS"
        print(f"  {name:<26}{one['median']:.3f} (fastest: {one['fastest']:.3f}), {one['steps']} steps each, {same}")
        if one["median"] > SLOWER_ALLOWED:
            slower.append(name)
    for name in slower:
        print(f"failed: {name}: slower than the baseline by more than {SLOWER_ALLOWED - 1:.0%}", file=sys.stderr)
    return bool(slower)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", help="only the cases whose name contains this; the result is printed, not kept")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, help="turns of each runner: 2, with a baseline 5")
    parser.add_argument("--modes", nargs="*", choices=["eager", "compile"], default=["eager", "compile"], help="of PyTorch")
    parser.add_argument("--baseline", metavar="PROGRAM", help="another build of ours; the result is printed, not kept")
    parser.add_argument("--quick", action="store_true", help="tiny models, one turn of each; printed, not kept")
    args = parser.parse_args()
    if args.baseline and not os.access(args.baseline, os.X_OK):
        parser.error(f"{args.baseline} is no program")
    repeats = args.repeats or (1 if args.quick else 5 if args.baseline else 2)

    bench = Bench("cpu-step")
    for name, what in (QUICK_CASES if args.quick else CASES).items():
        if not args.case or args.case in name:
            measure(bench, Case(name, what, args), repeats)
    slower = compare_with_baseline(bench) if args.baseline else False
    code = bench.finish(keep=not (args.case or args.quick or args.baseline))
    return 1 if slower else code


if __name__ == "__main__":
    sys.exit(main())
