"""Trains the byte-level gpt of bench/text-twin.py in PyTorch and prints the losses and the time of a step.

The model, the initial weights, the optimizer and the schedule are the job's, each written here as its documentation
says; the arithmetic is PyTorch's. The job comes as JSON, with the numbers of the records that each step reads: see
bench/text-twin.py.
"""

import argparse
import json
import math
import pathlib
import statistics
import time

import torch

from lockstep_files import load_gpt, read_safetensors
from torch_models import Gpt


def windows(text, seq):
    """[records, seq + 1]: every record and the byte after it, which is the next one's first."""
    count = (len(text) - 1) // seq
    values = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    return torch.stack([values[i * seq : i * seq + seq + 1] for i in range(count)]).long()


def learning_rate(job, step):
    """Steps count from 1; a linear warm-up to the peak, then half a cosine down to min at the last step."""
    warmup = math.ceil(job["warmup"] * job["steps"])
    if step <= warmup:
        return job["lr"] * step / warmup
    done = (step - warmup) / (job["steps"] - warmup)
    return job["min_lr"] + (job["lr"] - job["min_lr"]) * (1 + math.cos(math.pi * done)) / 2


def make_optimizer(model, job):
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    plain = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": job["weight_decay"]}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=job["lr"], betas=job["betas"], eps=job["eps"], fused=True)


def train(model, records, job, microbatch):
    optimizer = make_optimizer(model, job)
    batch = job["global_batch"]
    losses, seconds = [], []
    for step, chosen in enumerate(job["order"], 1):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for part in records[chosen].split(microbatch):
            loss = model(part[:, :-1], part[:, 1:]) * (len(part) / batch)
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), job["clip_norm"], foreach=True)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(job, step)
        optimizer.step()
        losses.append(total)
        seconds.append(time.perf_counter() - start)
    return losses, seconds


@torch.no_grad()
def evaluate(model, records, batch):
    total = sum(model(part[:, :-1], part[:, 1:]).item() * len(part) for part in records.split(batch))
    return total / len(records)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", help="a JSON file")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--microbatch", type=int, help="default: the whole batch at once")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    job = json.loads(pathlib.Path(args.job).read_text())

    records = windows(pathlib.Path(job["text"]).read_bytes(), job["seq"])
    held_out = int(len(records) * job["hold_out"])
    model = Gpt(job["layers"], job["dim"], job["heads"], job["vocab"], job["seq"])
    load_gpt(model, read_safetensors(job["weights"]))
    losses, seconds = train(model, records[:-held_out], job, args.microbatch or job["global_batch"])
    result = {
        "losses": losses,
        "eval_loss": evaluate(model, records[-held_out:], job["global_batch"]),
        "step_ms": 1e3 * statistics.median(seconds),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
