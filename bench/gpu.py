"""One training step on a GPU: ours beside PyTorch, eager and compiled, in the same run.

A step is forward, backward, clipping of the gradient norm and AdamW; same sizes and batch for everyone. Ours computes in bf16
with f32 parameters, gradients and optimizer state; so does PyTorch for gpt2 (autocast). For the others PyTorch has all of it in
bf16, which is its faster way and moves half of the bytes; in the cases "bf16 state" ours has it so too, with parameters and
moments rounded stochastically. Each turn is a process of its own. Compared are tokens or images per second, the most memory that tensors took on the device, and
the time to the end of the first step; and, of one model, that of the whole program with nothing cached and with what an
earlier start has left. The floor is what matrix products alone would take at the rate that a large one
reaches on this machine (8192 cubed, bf16, random operands).

`LOCKSTEP_PROGRAM` names a program that was built with the CUDA backend (build/cuda/lockstep unless it is set).
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from harness import OURS, PEERS_PYTHON, ROOT, Bench, Metric, RunFailed, run_json

PROGRAM = pathlib.Path(os.environ.get("LOCKSTEP_PROGRAM") or ROOT / "build" / "cuda" / "lockstep")
GIB = 2**30

GPT2 = ["--model", "gpt", "--layers", "12", "--dim", "768", "--heads", "12", "--vocab", "50304", "--seq", "1024"]
LLAMA = ["--heads", "32", "--vocab", "32000", "--seq", "2048"]
LLAMA_1B = ["--model", "llama", "--layers", "22", "--dim", "2048", "--kv-heads", "4", "--hidden", "5632", *LLAMA]
LLAMA_7B = ["--model", "llama", "--layers", "32", "--dim", "4096", "--kv-heads", "32", "--hidden", "11008", *LLAMA]

PURE = ["--precision", "bf16_pure"]
F32_STATE = ["--precision", "bf16"]
BF16_STATE = [*PURE, "--moments", "bf16", "--recompute", "fused"]
ATTENTION_1B, ATTENTION_7B = 6 * 22 * 2048 * 2048, 6 * 32 * 4096 * 2048

# name: (ours, the peer's case, batch, seq, our options, the peer's, floating-point operations per item beside 6 per
# parameter: the two products of causal attention, forward and backward)
CASES = {
    "gpt2 124M": (GPT2, "gpt2", 64, 1024, F32_STATE, [], 6 * 12 * 768 * 1024),
    "llama 1.1B": (LLAMA_1B, "llama1b", 8, 2048, [*F32_STATE, "--recompute", "fused"], PURE, ATTENTION_1B),
    "llama 1.1B, bf16 state": (LLAMA_1B, "llama1b", 8, 2048, BF16_STATE, PURE, ATTENTION_1B),
    "llama 7B": (LLAMA_7B, "llama7b", 4, 2048, [*F32_STATE, "--recompute", "cheap"], [*PURE, "--recompute"], ATTENTION_7B),
    "llama 7B, bf16 state": (LLAMA_7B, "llama7b", 4, 2048, BF16_STATE, [*PURE, "--recompute"], ATTENTION_7B),
    "resnet50": (["--model", "resnet50", "--image", "224"], "resnet50", 256, 1, F32_STATE, PURE, None),
}
RESNET50_FLOPS = 3 * 2 * 4.09e9  # a training step of one 224 x 224 image


def matrix_rate():
    program = (
        "import torch, time, json\n"
        "a = torch.randn(8192, 8192, device='cuda', dtype=torch.bfloat16); b = torch.randn_like(a)\n"
        "for _ in range(5): a @ b\n"
        "torch.cuda.synchronize(); t = time.time()\n"
        "for _ in range(20): a @ b\n"
        "torch.cuda.synchronize()\n"
        "print(json.dumps({'rate': 2 * 8192**3 * 20 / (time.time() - t), 'gpu': torch.cuda.get_device_name()}))\n"
    )
    return run_json([PEERS_PYTHON, "-c", program])


class Case:
    def __init__(self, name, args, rate):
        self.name, self.args, self.rate = name, args, rate
        self.flags, self.peer, self.batch, self.seq, self.own, self.more, self.attention = CASES[name]

    def ours(self):
        command = [PROGRAM, "bench", "step", "--device", "cuda", *self.flags, "--batch", self.batch]
        command += ["--threads", os.cpu_count(), *self.own]
        command += ["--steps", self.args.steps, "--json"]
        figures = run_json(command)
        items = self.batch * self.seq
        flops = RESNET50_FLOPS if self.attention is None else 6 * figures["parameters"] + self.attention
        return {
            **figures,
            "items_per_second": items / figures["step_ms"] * 1e3,
            "first_step_s": figures["first_step_ms"] / 1e3,
            "floor": self.rate / flops,
        }

    def torch(self, mode):
        script = ROOT / "bench" / "peers" / "torch_gpu.py"
        command = [PEERS_PYTHON, script, "--case", self.peer, "--mode", mode]
        return run_json([*command, "--batch", self.batch, "--seq", self.seq, "--steps", self.args.steps, *self.more])

    def runners(self):
        return {OURS: self.ours, **{f"torch {mode}": lambda mode=mode: self.torch(mode) for mode in self.args.modes}}


START = "start of gpt2 124M"
START_JOB = """
name: start
device: cuda
model: {family: gpt, layers: 12, dim: 768, heads: 12, vocab: 50304, seq: 1024}
data: {train: {format: synthetic}}
train: {steps: 1, global_batch: 64, microbatch: 64, precision: bf16, optimizer: {name: adamw}, lr: {base: 1e-4}}
output: run
"""


class Start:
    """From the start of the process to the end of its first step; PyTorch's imports are not counted."""

    def __init__(self, args):
        self.args = args
        self.kept = tempfile.mkdtemp(prefix="gpu-start.")  # what our earlier starts have left

    def ours(self, cached):
        with tempfile.TemporaryDirectory(prefix="gpu-start.") as folder:
            cache = self.kept if cached else folder
            (pathlib.Path(folder) / "job.yaml").write_text(START_JOB)
            env = {**os.environ, "LOCKSTEP_CACHE": cache}
            done = subprocess.run([PROGRAM, "train", "job.yaml"], cwd=folder, env=env, capture_output=True, text=True)
            if done.returncode != 0:
                raise RunFailed(f"lockstep train: exit code {done.returncode}: {done.stderr[-300:]}")
            summary = json.loads((pathlib.Path(folder) / "run" / "summary.json").read_text())
            return {"seconds": summary["time_to_first_step_s"]}

    def torch(self, mode):
        command = [PEERS_PYTHON, ROOT / "bench" / "peers" / "torch_gpu.py", "--case", "gpt2", "--mode", mode]
        return {"seconds": run_json([*command, "--batch", 64, "--seq", 1024, "--steps", 1])["first_step_s"]}

    def runners(self):
        self.ours(cached=True)  # fills the cache
        ours = {OURS: lambda: self.ours(cached=False), "ours, cached": lambda: self.ours(cached=True)}
        return {**ours, **{f"torch {mode}": lambda mode=mode: self.torch(mode) for mode in self.args.modes}}


def metrics(case):
    unit = "images/s" if case.attention is None else "tokens/s"
    return [
        Metric("speed", unit, "higher", lambda f: f["items_per_second"], floor=lambda f: f["floor"]),
        Metric("peak memory", "GiB", "lower", lambda f: f["device_peak_bytes"] / GIB),
        Metric("end of the first step", "s", "lower", lambda f: f["first_step_s"]),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", help="only the case of this name, or those whose name contains it; others keep their figures")
    parser.add_argument("--modes", nargs="*", choices=["eager", "compile"], default=["eager", "compile"], help="of PyTorch")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=1)
    args = parser.parse_args()
    measured = matrix_rate()
    bench = Bench("gpu")
    bench.versions["gpu"] = measured["gpu"]
    bench.facts["bf16 matrix rate, TFLOP/s"] = {"8192 cubed": measured["rate"] / 1e12}
    wanted = [args.case] if args.case in CASES else [name for name in [*CASES, START] if (args.case or "") in name]
    for name in (name for name in wanted if name != START):
        case = Case(name, args, measured["rate"])
        bench.measure(name, case.runners(), metrics(case), args.repeats)
    if START in wanted:
        start = Start(args)
        ends = [Metric("end of the first step", "s", "lower", lambda f: f["seconds"])]
        bench.measure(START, start.runners(), ends, 3, contenders=lambda first: ["ours, cached"])
        shutil.rmtree(start.kept)
    bench.take_others(wanted)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
