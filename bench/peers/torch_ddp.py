"""Times training steps of the reference gpt under PyTorch's DistributedDataParallel with Gloo, one process a worker.

A step is that of torch_step.py (zero_grad, forward, backward, clipping, AdamW) on every worker's own batch; DDP adds up
the gradients while backward goes on. Prints one JSON object: the median step of worker 0, which ends with everybody's,
since none can update before the last bucket has come from all.

Without RANK in the environment it starts all workers here; with it, it is one of them, on a host of its own. --hook
compresses gradients as PyTorch offers it: fp16, or PowerSGD of rank 4 with its error feedback.
"""

import argparse
import json
import os
import socket
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from torch_models import build


def make_step(model, batch, hook):
    # Gradients that live in the buckets save a copy: the faster of DDP's settings.
    shared = DistributedDataParallel(model, gradient_as_bucket_view=True)
    if hook == "fp16":
        shared.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif hook == "powersgd":
        # It can begin with the third step; those before are part of the warm-up.
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
        shared.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = shared(*batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()
        return loss.item()

    return step


def run_local(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    run_worker(rank, args)


def run_worker(rank, args):
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo", rank=rank, world_size=args.workers)
    args.seed += rank  # other data on every worker; DDP gives all the weights of worker 0
    model, batch = build(args)
    step = make_step(model, batch, args.hook)
    for _ in range(args.warmup):
        step()
    dist.barrier()
    seconds = []
    for _ in range(args.steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    if rank == 0:
        median = statistics.median(seconds)
        print(json.dumps({"step_ms": 1e3 * median, "samples_s": args.workers * args.batch / median}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("workers", "layers", "dim", "heads", "vocab", "batch", "seq"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--model", default="gpt")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hook", choices=["none", "fp16", "powersgd"], default="none")
    args = parser.parse_args()
    if "RANK" in os.environ:
        return run_worker(int(os.environ["RANK"]), args)
    mp.spawn(run_local, args=(args, free_port()), nprocs=args.workers)


if __name__ == "__main__":
    main()
