"""Times training steps of the reference llama whose state is split between workers, with PyTorch on Gloo, one process a worker.

`--how fsdp` is FSDP2 (fully_shard on every block and on the rest), which gathers parameters for every microbatch, frees them
after forward, and reduce-scatters gradients in backward: ZeRO-3. `--how fsdp-kept` keeps them until backward has used them:
ZeRO-2. Any other is a schedule of torch.distributed.pipelining, with one stage a worker (two where it is interleaved).

A step is zero_grad, forward and backward of all microbatches, clipping of the gradient norm (of a pipeline, each stage's own:
there is no function for all of it) and AdamW. Prints one JSON object: the median step of the slowest worker, and what all
workers sent over the loopback interface in a step, which is theirs alone in a network namespace of its own.
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
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

from torch_models import build

PIPELINES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B, "interleaved": ScheduleInterleaved1F1B}
CHUNKS = {"interleaved": 2}


def optimizer_of(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, foreach=True)


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def sharded_step(args, rank):
    from torch.distributed.fsdp import fully_shard

    args.seed += rank  # other data on every worker
    model, batch = build(args)
    mesh = init_device_mesh("cpu", (args.workers,))
    again = args.how == "fsdp"
    for block in model.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=again)
    fully_shard(model, mesh=mesh, reshard_after_forward=again)
    parameters = list(model.parameters())
    optimizer = optimizer_of(parameters)

    def step():
        optimizer.zero_grad(set_to_none=True)
        for microbatch in range(args.microbatches):
            # Gradients of all but the last microbatch stay with the worker: the faster of FSDP's settings.
            model.set_requires_gradient_sync(microbatch + 1 == args.microbatches)
            model(*batch).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()

    return step


class Stage(nn.Module):
    """Some blocks of the model, with the table of tokens or the head where it is the first or the last."""

    def __init__(self, model, blocks, first, last):
        super().__init__()
        self.tokens = model.tokens if first else None
        self.rotary = model.rotary
        self.blocks = nn.ModuleList(blocks)
        self.norm, self.head = (model.norm, model.head) if last else (None, None)

    def forward(self, x):
        if self.tokens is not None:
            x = self.tokens(x)
        for block in self.blocks:
            x = block(x, self.rotary)
        return self.head(self.norm(x)) if self.head is not None else x


def pipeline_step(args, rank):
    model, (inputs, targets) = build(args)
    count = args.workers * CHUNKS.get(args.how, 1)
    each = args.layers // count
    stages = []
    for index in range(rank, count, args.workers):
        blocks = model.blocks[index * each : (index + 1) * each]
        module = Stage(model, blocks, index == 0, index == count - 1)
        stages.append(PipelineStage(module, index, count, torch.device("cpu")))
    chosen = PIPELINES[args.how]
    given = stages if args.how in CHUNKS else stages[0]
    schedule = chosen(given, n_microbatches=args.microbatches, loss_fn=loss_of)
    parameters = [one for stage in stages for one in stage.submod.parameters()]
    optimizer = optimizer_of(parameters)
    inputs, targets = inputs.repeat(args.microbatches, 1), targets.repeat(args.microbatches, 1)

    def step():
        optimizer.zero_grad(set_to_none=True)
        schedule.step(*([inputs] if rank == 0 else []), **({"target": targets} if rank == args.workers - 1 else {}))
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()

    return step


def sent_bytes():
    with open("/proc/net/dev") as lines:
        for line in lines:
            name, _, counts = line.partition(":")
            if name.strip() == "lo":
                return int(counts.split()[8])
    return 0


def run_worker(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo", rank=rank, world_size=args.workers)
    pipelined = args.how in PIPELINES
    step = (pipeline_step if pipelined else sharded_step)(args, rank)
    for _ in range(args.warmup):
        step()
    dist.barrier()
    before = sent_bytes()
    seconds = []
    for _ in range(args.steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    dist.barrier()
    slowest = torch.tensor(statistics.median(seconds))
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    if rank == 0:
        samples = args.batch * args.microbatches * (1 if pipelined else args.workers)
        figures = {"step_ms": 1e3 * slowest.item(), "samples_s": samples / slowest.item()}
        print(json.dumps({**figures, "sent_bytes": (sent_bytes() - before) / args.steps}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--how", required=True, choices=["fsdp", "fsdp-kept", *PIPELINES])
    for name in ("workers", "layers", "dim", "heads", "kv-heads", "hidden", "vocab", "batch", "seq", "microbatches"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--model", default="llama")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    mp.spawn(run_worker, args=(args, free_port()), nprocs=args.workers)


if __name__ == "__main__":
    main()
