#!/usr/bin/env python3
"""Writes generate.json: what transformers' greedy generation makes of tiny models of every decoder family.

Weights are not stored: element i of tensor `name` is a function of (salt, name, i) that the test computes as well
(`values` below, weights_of in generate_golden_test.cc), exact in f32. The salt is chosen so that the likeliest token is
ahead of the next by more than 1e-3 at every step, which no order of summation makes up for.

Needs torch, transformers 5.22, safetensors, numpy.
"""
import json
import pathlib
import tempfile

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

MASK = (1 << 64) - 1
TOKENS = 30
GAP = 1e-3


def fnv(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def uniform(seed, count):
    """splitmix64 of seed + i: multiples of 2^-24 in [-0.5, 0.5)."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24) - np.float32(0.5)


def values(salt, name, shape, gemma):
    count = int(np.prod(shape))
    u = uniform((fnv(name) + salt) & MASK, count)
    if name.endswith(".bias"):
        x = u * np.float32(0.25)
    elif len(shape) == 1:
        x = u * np.float32(0.5) + np.float32(0.0 if gemma else 1.0)
    else:
        x = u * np.float32(1.0 if "embed" in name or "wte" in name or "lm_head" in name else 0.5)
    return x.astype(np.float32).reshape(shape)


SMALL = dict(vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=256)
LONG = list(range(3, 97, 4)) * 3

CASES = [
    ("llama", dict(model_type="llama", **SMALL), [5, 17, 3, 80], 1.0),
    ("llama, one token", dict(model_type="llama", **SMALL, tie_word_embeddings=True), [11], 1.0),
    ("llama, a long prompt", dict(model_type="llama", **SMALL), LONG, 1.0),
    ("llama, penalty", dict(model_type="llama", **SMALL), [5, 17, 3, 80, 17], 1.3),
    ("llama, biases", dict(model_type="llama", **SMALL, attention_bias=True, mlp_bias=True), [9, 9, 1], 1.0),
    ("llama3 rope", dict(model_type="llama", **SMALL, rope_parameters=dict(
        rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=64)), [5, 17, 3, 80], 1.0),
    ("yarn", dict(model_type="llama", **SMALL, rope_parameters=dict(
        rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=64)), [5, 17, 3], 1.0),
    ("linear rope", dict(model_type="llama", **SMALL, rope_parameters=dict(
        rope_type="linear", rope_theta=10000.0, factor=2.0)), [5, 17, 3, 80], 1.0),
    ("mistral, window shorter than the prompt", dict(model_type="mistral", **SMALL, sliding_window=8),
     list(range(20, 40)), 1.0),
    ("mistral, window crossed", dict(model_type="mistral", **SMALL, sliding_window=8), [5, 17, 3, 80], 1.0),
    ("mistral, window longer than the text", dict(model_type="mistral", **SMALL, sliding_window=64),
     [5, 17, 3, 80], 1.0),
    ("qwen2", dict(model_type="qwen2", **SMALL), [5, 17, 3, 80], 1.0),
    ("qwen2, late windows", dict(model_type="qwen2", **SMALL, use_sliding_window=True, sliding_window=6,
                                 max_window_layers=1), list(range(50, 65)), 1.0),
    ("qwen3", dict(model_type="qwen3", **SMALL, head_dim=16), [5, 17, 3, 80], 1.0),
    ("gemma2", dict(model_type="gemma2", **SMALL, head_dim=16, sliding_window=8, query_pre_attn_scalar=24,
                    tie_word_embeddings=False), list(range(60, 72)), 1.0),
    ("gemma3_text", dict(model_type="gemma3_text", **SMALL, head_dim=16, sliding_window=8, layer_types=[
        "sliding_attention", "sliding_attention", "full_attention"]), list(range(60, 72)), 1.5),
    ("phi3", dict(model_type="phi3", **SMALL, sliding_window=None), [5, 17, 3, 80], 1.0),
    ("olmo2", dict(model_type="olmo2", **SMALL), [5, 17, 3, 80], 1.0),
    ("gpt2", dict(model_type="gpt2", vocab_size=97, n_embd=32, n_layer=3, n_head=4, n_positions=128),
     [5, 17, 3, 80], 1.0),
    ("gpt_neox", dict(model_type="gpt_neox", **{k: v for k, v in SMALL.items() if k != "num_key_value_heads"},
                      rotary_pct=0.5), [5, 17, 3, 80], 1.0),
    ("gpt_neox, one after the other", dict(
        model_type="gpt_neox", **{k: v for k, v in SMALL.items() if k != "num_key_value_heads"},
        use_parallel_residual=False), [5, 17, 3, 80], 1.0),
]


def generated(folder, salt, prompt, penalty, gemma):
    path = pathlib.Path(folder) / "model.safetensors"
    tensors = {name: values(salt, name, t.shape, gemma) for name, t in load_file(path).items()}
    save_file(tensors, path, metadata={"format": "pt"})
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    ids = torch.tensor([prompt])
    with torch.no_grad():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=TOKENS, min_new_tokens=TOKENS,
                             do_sample=False, repetition_penalty=penalty, output_scores=True,
                             return_dict_in_generate=True, eos_token_id=None, pad_token_id=0)
    top = torch.stack([torch.topk(s[0], 2).values for s in out.scores])
    return out.sequences[0, len(prompt):].tolist(), float((top[:, 0] - top[:, 1]).min())


def main():
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    result = []
    for name, settings, prompt, penalty in CASES:
        gemma = settings["model_type"].startswith("gemma")
        torch.manual_seed(0)
        settings = dict(settings)
        for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
            settings.setdefault(key, None)
        config = AutoConfig.for_model(**settings)
        with tempfile.TemporaryDirectory() as folder:
            AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)
            for salt in range(100):
                tokens, gap = generated(folder, salt, prompt, penalty, gemma)
                if gap > GAP and len(set(tokens)) >= 6:
                    break
            else:
                raise SystemExit(f"{name}: no salt gives tokens that are far enough apart: {gap}, {tokens}")
            text = json.loads((pathlib.Path(folder) / "config.json").read_text())
            text.pop("transformers_version", None)
        print(f"{name}: salt {salt}, gap {gap:.4f}, {len(set(tokens))} distinct tokens")
        result.append(dict(name=name, salt=salt, config=text, prompt=prompt, penalty=penalty, tokens=tokens))
    lines = ",\n".join(json.dumps(case) for case in result)
    (pathlib.Path(__file__).parent / "generate.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
