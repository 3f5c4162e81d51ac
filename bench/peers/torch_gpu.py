"""One training step on a GPU in PyTorch, as its users would write it for speed: fused AdamW, SDPA attention, bf16.

    torch_gpu.py --case gpt2 --mode compile

Prints one JSON object: the median step, tokens or images per second, peak memory, seconds to the end of the first and
third step. `--precision bf16` is autocast over f32 parameters, `bf16_pure` has bf16 parameters and optimizer state.
"""

import argparse
import json
import statistics
import time

import torch

torch.set_float32_matmul_precision("high")
DEVICE = "cuda"


def language_model(case, layers):
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    common = dict(attn_implementation="sdpa", use_cache=False)
    if case == "gpt2":
        config = GPT2Config(vocab_size=50304, n_positions=1024, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **common)
        return GPT2LMHeadModel(config)
    sizes = {
        "llama1b": dict(hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_key_value_heads=4),
        "llama7b": dict(hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_key_value_heads=32),
    }[case]
    if layers:
        sizes["num_hidden_layers"] = layers
    config = LlamaConfig(vocab_size=32000, num_attention_heads=32, max_position_embeddings=2048, **sizes, **common)
    return LlamaForCausalLM(config)


def language_step(args):
    default = torch.get_default_dtype()
    pure = args.precision == "bf16_pure"
    if pure:
        torch.set_default_dtype(torch.bfloat16)
    with torch.device(DEVICE):
        model = language_model(args.case, args.layers)
    torch.set_default_dtype(default)
    model.train()
    if args.recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    run = torch.compile(model) if args.mode == "compile" else model
    tokens = torch.randint(0, 32000, (args.batch, args.seq), device=DEVICE)

    def step():
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=not pure):
            loss = run(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step, args.batch * args.seq, sum(p.numel() for p in model.parameters())


def image_step(args):
    import torchvision

    pure = args.precision == "bf16_pure"
    model = torchvision.models.resnet50().to(DEVICE).to(memory_format=torch.channels_last)
    model = model.bfloat16() if pure else model
    run = torch.compile(model) if args.mode == "compile" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    images = torch.randn(args.batch, 3, 224, 224, device=DEVICE).to(memory_format=torch.channels_last)
    images = images.bfloat16() if pure else images
    labels = torch.randint(0, 1000, (args.batch,), device=DEVICE)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=not pure):
            loss = torch.nn.functional.cross_entropy(run(images).float(), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step, args.batch, sum(p.numel() for p in model.parameters())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=["gpt2", "llama1b", "llama7b", "resnet50"], required=True)
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--precision", choices=["bf16", "bf16_pure"], default="bf16")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seq", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=0, help="fewer layers than the model has")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    begun = time.time()
    step, items, parameters = (image_step if args.case == "resnet50" else language_step)(args)
    step().item()
    first = time.time() - begun
    step(), step()
    torch.cuda.synchronize()
    third = time.time() - begun
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(args.steps):
        start = time.perf_counter()
        loss = step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    ms = statistics.median(times)
    print(
        json.dumps(
            {
                "step_ms": ms,
                "items_per_second": items / ms * 1e3,
                "device_peak_bytes": torch.cuda.max_memory_allocated(),
                "first_step_s": first,
                "third_step_s": third,
                "parameters": parameters,
                "loss": loss.item(),
            }
        )
    )


if __name__ == "__main__":
    main()
