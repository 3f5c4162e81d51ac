"""Times full CPU training steps of the reference models in PyTorch and prints one line of figures.

A step is zero_grad, forward, backward, clipping of the global gradient norm, and AdamW. The same seeded batch
is used at every step. Peak memory is the process's high-water mark; what the libraries take before any model
exists is given apart, because it is paid whatever the model.
"""

import argparse
import importlib
import json
import statistics
import time

import torch

from torch_models import BUILDERS, build

DEFAULTS = {
    "gpt": {"layers": 12, "dim": 768, "heads": 12, "vocab": 50304, "batch": 4, "seq": 256},
    "llama": {"layers": 12, "dim": 768, "heads": 12, "kv_heads": 12, "hidden": 2048, "vocab": 32000, "batch": 4, "seq": 256},
    "encoder": {"layers": 12, "dim": 768, "heads": 12, "vocab": 30522, "batch": 8, "seq": 128},
    "tabular": {"dim": 32, "batch": 2048},
    "resnet18": {"batch": 16},
    "resnet50": {"batch": 16},
}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=BUILDERS, required=True)
    for name in ("layers", "dim", "heads", "kv-heads", "hidden", "vocab", "batch", "seq"):
        parser.add_argument(f"--{name}", type=int, help="default: the model's own")
    parser.add_argument("--image", type=int, default=64)
    parser.add_argument("--tables", type=int, default=26)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--mode", choices=("eager", "compile"), default="eager")
    parser.add_argument("--compile-mode", default="default", help="torch.compile's own mode")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", action="store_true", help="print the operators' shares of one step")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for name, value in DEFAULTS[args.model].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    return args


def peak_rss_bytes():
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def make_step(model, batch, args):
    forward = torch.compile(model, mode=args.compile_mode) if args.mode == "compile" else model
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.01, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = forward(*batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()
        return loss.item()

    return step


def print_profile(step):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        step()
    print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=25))


def main():
    args = parse_args()
    torch.set_num_threads(args.threads)
    if args.mode == "compile":
        importlib.import_module("torch._inductor.compile_fx")  # torch.compile would load it at the first step
    library_rss = peak_rss_bytes()
    model, batch = build(args)
    step = make_step(model, batch, args)

    losses = [step() for _ in range(args.warmup)]
    times = []
    for _ in range(args.steps):
        start = time.perf_counter()
        losses.append(step())
        times.append(1e3 * (time.perf_counter() - start))

    result = {
        "model": args.model,
        "mode": args.mode,
        "step_ms": round(statistics.median(times), 3),
        "step_ms_min": round(min(times), 3),
        "step_ms_all": [round(ms, 3) for ms in times],
        "peak_rss_bytes": peak_rss_bytes(),
        "library_rss_bytes": library_rss,
        "params": sum(parameter.numel() for parameter in model.parameters()),
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "torch_version": torch.__version__,
    }
    if args.json:
        print(json.dumps(result))
    else:
        print(f"{args.model} {args.mode}: {result['step_ms']} ms, {result['peak_rss_bytes'] / 2**20:.0f} MiB")
    if args.profile:
        print_profile(step)


if __name__ == "__main__":
    main()
