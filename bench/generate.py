"""How fast a model writes: `lockstep generate` beside transformers' generate, on the processor.

The model is a llama of 246 million parameters with random weights (bench/peers/random_llama.py), which both read from the
same folder. A prompt is read at once, then tokens are written one at a time, each the likeliest. The clocks run inside the
processes: starting and loading the weights do not count. The floor of writing is what memory allows: every weight but the
table of tokens is read once for each token, at the bandwidth that a sum over a gigabyte reaches on the same threads.
In fp32 both must write the same tokens.
"""

import argparse
import os
import pathlib
import sys
import tempfile

from harness import LOCKSTEP, OURS, PEERS_PYTHON, ROOT, Bench, Metric, WrongResult, run_json

PEERS = ROOT / "bench" / "peers"
VOCAB, WIDTH = 32000, 1024
TYPES = {"fp32": ("float32", 4), "bf16": ("bfloat16", 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=64, help="tokens to write")
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=TYPES, help="only this type; the result is printed, not kept")
    args = parser.parse_args()
    bench = Bench("generate")
    prompt = " ".join(str((7 * i + 3) % VOCAB) for i in range(args.prompt))
    written = {}

    def ours(folder, kind):
        out = run_json([LOCKSTEP, "generate", folder, "--ids", "--prompt", prompt, "--max-tokens", args.tokens, "--json",
                        "--quiet", "--threads", args.threads, "--precision", kind])
        written.setdefault(kind, out["ids"])
        if written[kind] != out["ids"]:
            raise WrongResult("other tokens than before")
        return {"prompt": out["prompt_seconds"], "token": out["seconds"] / (args.tokens - 1)}

    def theirs(folder, kind, attention):
        out = run_json([PEERS_PYTHON, PEERS / "transformers_generate.py", folder, "--prompt", args.prompt, "--tokens",
                        args.tokens, "--threads", args.threads, "--dtype", TYPES[kind][0], "--attention", attention])
        if kind == "fp32" and written.get(kind, out["ids"]) != out["ids"]:
            raise WrongResult("other tokens than lockstep")
        return {"prompt": out["prompt_seconds"], "token": out["token_seconds"]}

    with tempfile.TemporaryDirectory(prefix="generate.") as folder:
        for kind in [args.only] if args.only else TYPES:
            name, size = TYPES[kind]
            at = pathlib.Path(folder) / kind
            run_json([PEERS_PYTHON, PEERS / "random_llama.py", at, name])
            memory = run_json([PEERS_PYTHON, PEERS / "transformers_generate.py", at, "--prompt", 1, "--tokens", 1,
                               "--threads", args.threads, "--bandwidth"])["bandwidth"]
            read = (at / "model.safetensors").stat().st_size - VOCAB * WIDTH * size
            bench.facts.setdefault("bandwidth", {})[kind] = memory
            bench.facts.setdefault("bytes per token", {})[kind] = read
            metrics = [
                Metric("prompt", "tokens/s", "higher", lambda f: args.prompt / f["prompt"]),
                Metric("writing", "tokens/s", "higher", lambda f: 1 / f["token"], lambda f: memory / read),
            ]
            runners = {OURS: lambda at=at, kind=kind: ours(at, kind)}
            for attention in ("sdpa", "eager"):
                runners[f"transformers, {attention}"] = lambda at=at, kind=kind, how=attention: theirs(at, kind, how)
            bench.measure(f"{kind}, {args.threads} threads", runners, metrics, args.repeats)
    bench.facts["prompt"], bench.facts["tokens"] = {"tokens": args.prompt}, {"tokens": args.tokens}
    return bench.finish(keep=not args.only)


if __name__ == "__main__":
    sys.exit(main())
