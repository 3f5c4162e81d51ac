"""One training step on the CPU: ours, PyTorch eager and torch.compile, for models from tiny to the size of GPT-2.

A step is forward, backward, clipping of the gradient norm and AdamW, in fp32, with the same shapes and thread count for
everyone. Each turn is a process of its own that warms up and reports the median of its steps. Compared are the time
of a step, the process's peak memory, and the share of the step that the bare matrix products of the model would take
(the GEMM floor, measured by our program with the library alone): 1 would mean that nothing else costs anything.
"""

import argparse
import sys

from harness import LOCKSTEP, OURS, PEERS_PYTHON, ROOT, Bench, Metric, run_json

MIB = 1 << 20

# name -> (flags, steps that are timed in one turn). The largest model of ours recomputes what is cheap to (norms,
# activations), which PyTorch's autograd has no switch for: the same maths and bits, less memory.
CASES = {
    "gpt 12x768 B4 T256": ("gpt --layers 12 --dim 768 --heads 12 --vocab 50304 --batch 4 --seq 256", 5, "--recompute cheap"),
    "bert-base B8 T128": ("encoder --layers 12 --dim 768 --heads 12 --vocab 30522 --batch 8 --seq 128", 5),
    "gpt 6x256 B16 T256": ("gpt --layers 6 --dim 256 --heads 8 --vocab 256 --batch 16 --seq 256", 8),
    "gpt 4x64 B8 T64": ("gpt --layers 4 --dim 64 --heads 4 --vocab 256 --batch 8 --seq 64", 50),
    "tabular 26 tables B2048": ("tabular --tables 26 --rows 100000 --dim 32 --batch 2048", 40),
    "resnet18 64x64 B16": ("resnet18 --image 64 --batch 16", 8),
}


def step_time():
    return Metric("step time", "ms", "lower", lambda f: f["step_ms"], floor=lambda f: f.get("gemm_floor_ms"))


def peak_memory():
    return Metric("peak memory", "MiB", "lower", lambda f: f["peak_rss_bytes"] / MIB)


def floor_share(floor_ms):
    """Everyone's step against the one floor, so that the shares can be compared."""
    return Metric("share of GEMM floor", "fraction", "higher", lambda f: floor_ms() / f["step_ms"] if floor_ms() else None)


def measure(bench, name, threads, repeats, modes):
    flags, steps, *own = CASES[name]
    flags = ["--model", *flags.split(), "--threads", threads, "--steps", steps, "--json"]
    floors = []

    def ours():
        figures = run_json([LOCKSTEP, "bench", "step", *flags, "--floor", *" ".join(own).split()])
        if figures.get("gemm_floor_ms"):
            floors.append(figures["gemm_floor_ms"])
        return figures

    def torch(mode):
        # Peers get the thread count through the environment as well: OpenMP reads it before any flag is parsed.
        script = ROOT / "bench" / "peers" / "torch_step.py"
        return run_json([PEERS_PYTHON, script, *flags, "--mode", mode], env={"OMP_NUM_THREADS": str(threads)})

    runners = {OURS: ours}
    for mode in modes:
        runners[f"torch {mode}"] = lambda mode=mode: torch(mode)
    metrics = [step_time(), peak_memory(), floor_share(lambda: min(floors, default=None))]
    bench.measure(name, runners, metrics, repeats)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", help="only the cases whose name contains this; the result is printed, not kept")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="turns of each runner")
    parser.add_argument("--modes", nargs="*", default=["eager", "compile"], help="of PyTorch")
    args = parser.parse_args()

    bench = Bench("cpu-step")
    for name in CASES:
        if not args.case or args.case in name:
            measure(bench, name, args.threads, args.repeats, args.modes)
    return bench.finish(keep=not args.case)


if __name__ == "__main__":
    sys.exit(main())
