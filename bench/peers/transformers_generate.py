"""transformers' generate on the processor: how fast it reads a prompt, and how fast it writes tokens after it.

Prints one JSON object: seconds for the prompt (one forward pass that fills the cache) and for each further token (the
whole generation less the prompt), the tokens, and the bandwidth at which the same threads read memory.
"""

import argparse
import json
import time

import torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging


def read_bandwidth():
    """Bytes per second of a sum over 1 GiB, the best of five."""
    values = torch.ones(1 << 28)
    best = 0.0
    for _ in range(5):
        start = time.perf_counter()
        values.sum()
        best = max(best, values.numel() * 4 / (time.perf_counter() - start))
    return best


def generate(model, ids, tokens):
    start = time.perf_counter()
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, min_new_tokens=tokens,
                         do_sample=False, eos_token_id=None, pad_token_id=0)
    return time.perf_counter() - start, out[0, ids.shape[1]:].tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--prompt", type=int, required=True)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--attention", choices=("eager", "sdpa"), default="sdpa")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bandwidth", action="store_true", help="measure only how fast memory is read")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    logging.disable_progress_bar()
    if args.bandwidth:
        print(json.dumps({"bandwidth": read_bandwidth()}))
        return
    model = AutoModelForCausalLM.from_pretrained(
        args.folder, dtype=getattr(torch, args.dtype), attn_implementation=args.attention
    ).eval()
    ids = torch.tensor([[(7 * i + 3) % model.config.vocab_size for i in range(args.prompt)]])
    with torch.no_grad():
        generate(model, ids[:, :8], 2)  # warm
        first, _ = generate(model, ids, 1)
        first = min(first, generate(model, ids, 1)[0])
        whole, tokens = generate(model, ids, args.tokens)
    print(json.dumps({"prompt_seconds": first, "token_seconds": (whole - first) / (args.tokens - 1), "ids": tokens}))


if __name__ == "__main__":
    main()
