"""What a peer needs of Lockstep to train from the same weights: a reader of its checkpoints' tensors, written from the
description of the safetensors format, and the names that the gpt family gives them. Only the standard library and torch
are used.
"""

import json
import pathlib
import struct

import torch


def read_safetensors(path):
    """The f32 tensors of a file, by name."""
    content = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    data = bytearray(content[8 + length :])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", f"{name} is {entry['dtype']}"
        first, last = entry["data_offsets"]
        flat = torch.frombuffer(data, dtype=torch.float32, count=(last - first) // 4, offset=first)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def load_gpt(model, tensors):
    """Copies GPT-2's names and layouts (matrices as input x output) into torch_models.Gpt."""
    names = {"tokens.weight": "wte.weight", "positions.weight": "wpe.weight"}
    for kind in ("weight", "bias"):
        names[f"norm.{kind}"] = f"ln_f.{kind}"
        for i in range(len(model.blocks)):
            for mine, theirs in (
                ("attention_norm", "ln_1"),
                ("attention.qkv", "attn.c_attn"),
                ("attention.proj", "attn.c_proj"),
                ("mlp_norm", "ln_2"),
                ("mlp.up", "mlp.c_fc"),
                ("mlp.down", "mlp.c_proj"),
            ):
                names[f"blocks.{i}.{mine}.{kind}"] = f"h.{i}.{theirs}.{kind}"
    linear = {name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = tensors.pop(names[name])
            parameter.copy_(value.t() if name.endswith("weight") and name[: -len(".weight")] in linear else value)
    assert not tensors, f"left over: {sorted(tensors)}"
