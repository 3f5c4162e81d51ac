"""Do the same weights learn the same on the GPU, on the processor and in PyTorch? A small gpt2 and a small llama, 50 steps from one
folder that transformers wrote, over the same rows in the same order.

Ours in bf16 on the GPU and on the processor, and in fp32 on the processor, beside PyTorch in fp32 and in bf16 (as ours: f32 weights,
rounded where they are read). What bf16 may do to a loss is what it does to PyTorch's: ours may lie as far from PyTorch's fp32 as
twice that, and ours in fp32 within 0.1 %. Without a GPU its part is left out.
"""

import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

from harness import PEERS_PYTHON, ROOT, RESULTS, RunFailed, machine, run_json

PROGRAM = pathlib.Path(os.environ.get("LOCKSTEP_PROGRAM") or ROOT / "build" / "cuda" / "lockstep")
BATCH, SEQ = 16, 128
FP32_TOLERANCE = 1e-3
LEAST_BF16 = 2e-3  # relative: where PyTorch's bf16 happens to lie closer to its fp32

MAKE = """
import sys, torch, transformers as t
torch.manual_seed(0)
folder, kind = sys.argv[1:]
model = {
    "gpt2": lambda: t.GPT2LMHeadModel(t.GPT2Config(vocab_size=256, n_embd=256, n_layer=4, n_head=4, n_positions=128, embd_pdrop=0,
                                                   attn_pdrop=0, resid_pdrop=0, bos_token_id=0, eos_token_id=0)),
    "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(vocab_size=256, hidden_size=256, intermediate_size=704, num_hidden_layers=4,
                                                      num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
                                                      tie_word_embeddings=False, bos_token_id=None, eos_token_id=None)),
}[kind]()
model.save_pretrained(folder)
print('{"written": true}')
"""

JOB = """\
name: twin
model: {{hf: {model}, seq: {seq}}}
data: {{train: {{format: tokens, files: {data}}}, shuffle: none}}
train:
  steps: {steps}
  global_batch: {batch}
  microbatch: {batch}
  precision: {precision}
  optimizer: {{name: adamw, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0}}
  lr: {{base: 3e-4}}
  clip_norm: 1.0
checkpoint: {{final: none}}
device: {device}
output: {output}
"""


def write_text(path, count):
    """This project's pages, byte by byte, as a file of `lockstep tokenize`."""
    text = b"".join(page.read_bytes() for page in sorted((ROOT / "docs").glob("*.md")))[:count]
    if len(text) < count:
        raise RunFailed(f"the pages have {len(text)} bytes, {count} are needed")
    body = struct.pack(f"<{count}H", *text)
    header = b"LOCKTOK\n" + struct.pack("<IIQQ", 1, 2, count, 1)
    path.write_bytes(header.ljust(64, b"\0") + body + bytes(-len(body) % 8) + struct.pack("<Q", count))


def ours(folder, model, data, precision, device, steps):
    job, output = folder / "job.yaml", folder / f"run-{model.name}-{precision}-{device}"
    job.write_text(
        JOB.format(
            model=model, seq=SEQ, data=data, steps=steps, batch=BATCH, precision=precision, device=device, output=output
        )
    )
    done = subprocess.run([PROGRAM, "train", job, "--fresh"], capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        raise RunFailed(f"lockstep train: exit code {done.returncode}: {done.stderr.strip().splitlines()[-1]}")
    records = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    return [record["loss"] for record in records if record["kind"] == "step"]


def torch(model, data, precision, steps):
    command = [PEERS_PYTHON, ROOT / "bench" / "peers" / "torch_finetune.py", "losses", "--model", model, "--data", data]
    command += ["--precision", precision, "--batch", BATCH, "--seq", SEQ, "--steps", steps, "--lr", 3e-4]
    return run_json(command)["losses"]


def furthest(losses, reference):
    return max(abs(a / b - 1) for a, b in zip(losses, reference, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()
    has_gpu = subprocess.run([PEERS_PYTHON, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"]).returncode == 0
    runs = [("fp32", "cpu"), ("bf16", "cpu")] + ([("bf16", "cuda")] if has_gpu else [])
    found, wrong = {}, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = folder / "text.bin"
        write_text(data, args.steps * BATCH * SEQ + 1)
        for kind in ("gpt2", "llama"):
            model = folder / kind
            run_json([PEERS_PYTHON, "-c", MAKE, model, kind])
            exact = torch(model, data, "fp32", args.steps)
            rounded = torch(model, data, "bf16", args.steps)
            allowed = max(2 * furthest(rounded, exact), LEAST_BF16)
            print(f"{kind}: PyTorch, fp32: loss {exact[0]:.4f} to {exact[-1]:.4f}; bf16 is off by at most {furthest(rounded, exact):.2e}")
            figures = found[kind] = {"first": exact[0], "last": exact[-1], "PyTorch, bf16": furthest(rounded, exact)}
            for precision, device in runs:
                losses = ours(folder, model, data, precision, device, args.steps)
                limit = FP32_TOLERANCE if precision == "fp32" else allowed
                off = furthest(losses, exact)
                figures[f"ours, {precision} on {device}"] = off
                good = off <= limit
                print(f"  ours, {precision} on {device}: to {losses[-1]:.4f}, off by at most {off:.2e} of {limit:.2e}"
                      f"{'' if good else '  WRONG'}")
                if not good:
                    wrong.append(f"{kind}, {precision} on {device}")
    if has_gpu:
        result = {"machine": machine(), "steps": args.steps, "largest relative distance from PyTorch's fp32": found}
        (RESULTS / "loss-twins.json").write_text(json.dumps(result, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
