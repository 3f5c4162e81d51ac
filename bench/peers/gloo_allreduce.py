"""All-reduce by PyTorch's Gloo, measured as `lockstep bench allreduce` measures ours. Prints one JSON object.

Usage: gloo_allreduce.py RANKS SECONDS BYTES...
"""

import json
import os
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

MAX_BATCHES = 11


def batch(data, calls):
    dist.barrier()
    start = time.perf_counter()
    for _ in range(calls):
        dist.all_reduce(data)
    return (time.perf_counter() - start) / calls


def median_seconds(data, seconds):
    batch(data, 2)
    once = batch(data, 3)
    calls = min(max(int(seconds / MAX_BATCHES / once), 1), 5000)
    plan = torch.tensor([calls, min(max(int(seconds / once / calls), 5), MAX_BATCHES)])
    dist.broadcast(plan, 0)
    return statistics.median(batch(data, int(plan[0])) for _ in range(int(plan[1])))


def run_rank(rank, ranks, port, seconds, sizes):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    rows = []
    for size in sizes:
        median = median_seconds(torch.zeros(size // 4), seconds)
        rows.append({"bytes": size, "time_us": median * 1e6, "busbw_gb_s": size / median / 1e9 * 2 * (ranks - 1) / ranks})
    if rank == 0:
        print(json.dumps({"workers": ranks, "sizes": rows}), flush=True)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    ranks, seconds, *sizes = int(sys.argv[1]), float(sys.argv[2]), *map(int, sys.argv[3:])
    mp.spawn(run_rank, args=(ranks, free_port(), seconds, sizes), nprocs=ranks)
