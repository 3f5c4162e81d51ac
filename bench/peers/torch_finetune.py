"""Fine-tuning of a Hugging Face folder in PyTorch, as its users would set it up for speed: transformers' model in bf16 with SDPA
attention, fused AdamW, PEFT for LoRA, compiled or not.

    torch_finetune.py train --model DIR --data TOKENS --mode compile [--lora 16] [--recompute]
    torch_finetune.py open --model DIR --data TOKENS [--adapter DIR]
    torch_finetune.py losses --model DIR --data TOKENS --precision bf16

`train` has weights, gradients and moments in bf16; adapters too. `open` gives the loss of an exported folder or adapter on the
first rows. `losses` trains on rows in their order, f32 weights read in f32 or in bf16, and prints the loss of every step.
TOKENS is a file of tokens of `lockstep tokenize`. Each prints one JSON object. PEFT is found where it is installed, or unpacked in
build/peft.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import numpy
import torch

BEGUN = time.time()
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
HEADER = 64  # bytes before the tokens

torch.set_float32_matmul_precision("high")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def peft():
    sys.path.append(str(ROOT / "build" / "peft"))
    import peft

    return peft


def rows_of(path, seq, first, count):
    """Inputs and targets of some rows, each of `seq` tokens and the one after them."""
    tokens = numpy.fromfile(path, dtype=numpy.uint16, count=(first + count) * seq + 1, offset=HEADER).astype(numpy.int64)
    rows = numpy.stack([tokens[i * seq : (i + 1) * seq + 1] for i in range(first, first + count)])
    rows = torch.from_numpy(rows).to(DEVICE)
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def load(folder, dtype):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa", device_map={"": DEVICE})
    model.config.use_cache = False
    return model


def loss_of(model, tokens, targets):
    logits = model(input_ids=tokens).logits.float()
    return torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def settle():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def train(args):
    model = load(args.model, torch.bfloat16)
    if args.lora:
        library = peft()
        config = library.LoraConfig(
            task_type="CAUSAL_LM", r=args.lora, lora_alpha=2 * args.lora, lora_dropout=0, target_modules="all-linear"
        )
        # In bf16 as the rest: in f32, PEFT's default, its products would not run in bf16.
        model = library.get_peft_model(model, config, autocast_adapter_dtype=False)
    model.train()
    if args.recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.enable_input_require_grads()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=args.lr, weight_decay=0, fused=DEVICE == "cuda")
    whole = torch.compile(loss_of) if args.mode == "compile" else loss_of
    losses, times, first = [], [], None
    for step in range(args.steps):
        tokens, targets = rows_of(args.data, args.seq, step * args.batch, args.batch)
        settle()
        start = time.perf_counter()
        loss = whole(model, tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        settle()
        times.append(time.perf_counter() - start)
        losses.append(loss.item())
        first = first or time.time() - BEGUN
    median = statistics.median(times[3:] or times)
    return {
        "step_ms": 1e3 * median,
        "tokens_per_second": args.batch * args.seq / median,
        "first_step_s": first,
        "device_peak_bytes": torch.cuda.max_memory_allocated() if DEVICE == "cuda" else 0,
        "trained": sum(parameter.numel() for parameter in trained),
        "losses": losses,
    }


def open_folder(args):
    model = load(args.model, torch.bfloat16)
    if args.adapter:
        model = peft().PeftModel.from_pretrained(model, args.adapter)
    model.eval()
    losses = []
    with torch.no_grad():
        for row in range(args.batch):
            losses.append(loss_of(model, *rows_of(args.data, args.seq, row, 1)).item())
    return {"loss": statistics.mean(losses)}


def losses(args):
    model = load(args.model, torch.float32).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0)
    found = []
    if args.precision == "fp32":
        torch.set_float32_matmul_precision("highest")
    for step in range(args.steps):
        tokens, targets = rows_of(args.data, args.seq, step * args.batch, args.batch)
        read = {name: parameter.to(DTYPES[args.precision]) for name, parameter in model.named_parameters()}
        logits = torch.func.functional_call(model, read, (), {"input_ids": tokens}).logits.float()
        loss = torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        found.append(loss.item())
    return {"losses": found}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["train", "open", "losses"])
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--adapter")
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--lora", type=int, default=0, help="rank; 0: all parameters are trained")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lr", type=float, default=1e-5)
    args = parser.parse_args()
    torch.manual_seed(0)
    print(json.dumps({"train": train, "open": open_folder, "losses": losses}[args.what](args)))


if __name__ == "__main__":
    main()
