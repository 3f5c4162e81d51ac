"""The first training step of a small gpt over bytes in PyTorch, from nothing: imports, text, model, one step.

Prints one line when the step is done, with the share of the time that went before the model: a step is the gpt
template's, four microbatches of 8, clipping and AdamW.
"""

import json
import pathlib
import sys
import time

START = time.perf_counter()

import torch  # noqa: E402

from torch_models import Gpt  # noqa: E402

IMPORTED = time.perf_counter()

T, BATCH, MICROBATCH = 128, 32, 8


def read_batch(folder):
    text = b"".join(path.read_bytes() for path in sorted(pathlib.Path(folder).iterdir()) if path.is_file())
    values = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    chosen = torch.randperm((len(text) - 1) // T)[:BATCH].tolist()
    return torch.stack([values[i * T : i * T + T + 1] for i in chosen]).long()


def main():
    folder, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(7)
    records = read_batch(folder)
    model = Gpt(layers=4, C=128, H=4, V=256, T=T)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    for part in records.split(MICROBATCH):
        loss = model(part[:, :-1], part[:, 1:]) * (MICROBATCH / BATCH)
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
    optimizer.step()
    done = time.perf_counter()
    print(json.dumps({"import_s": IMPORTED - START, "script_s": done - START, "loss": loss.item()}), flush=True)


if __name__ == "__main__":
    main()
