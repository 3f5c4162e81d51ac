"""Writes the golden states that golden_test.cc compares with: small seeded models in PyTorch, fp32 on the CPU.

Each file holds, under our parameter names: param.* (before), input.*, loss (the mean), grad.* (of the summed loss) and
after.* (parameters after three AdamW steps on the same batch, gradients divided by the count and clipped to norm 1),
and running.* (statistics of batch norms after the same steps).
The llamas are those of Hugging Face transformers, called with these parameters; the others are written out here.
Run: python tests/golden/make_golden.py [NAME...]   (needs torch, numpy, for the llamas transformers)
"""

import json
import pathlib
import struct
import sys

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent
statistics = {}  # of batch norms, as the model that is being run moves them


def save(path, tensors):
    """The safetensors layout: header length, JSON header, raw little-endian data."""
    header, blobs, offset = {}, [], 0
    for name, tensor in tensors.items():
        blob = tensor.detach().contiguous().numpy().tobytes()
        kind = {torch.float32: "F32", torch.int32: "I32"}[tensor.dtype]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def normal(*shape, std=0.1):
    return torch.randn(*shape) * std


def norm_params(p, name, C):
    p[name + ".weight"] = 1 + normal(C)
    p[name + ".bias"] = normal(C)


def layer_norm(p, name, x, eps):
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], eps)


def attention(q, k, v, H, causal):
    B, T, C = q.shape
    q, k, v = (t.view(B, T, H, C // H).transpose(1, 2) for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(B, T, C)


def gpt():
    L, C, H, V, B, T = 2, 24, 3, 50, 3, 17
    p = {"wte.weight": normal(V, C), "wpe.weight": normal(T, C)}
    for i in range(L):
        h = f"h.{i}."
        norm_params(p, h + "ln_1", C)
        norm_params(p, h + "ln_2", C)
        for name, fan_in, fan_out in [("attn.c_attn", C, 3 * C), ("attn.c_proj", C, C), ("mlp.c_fc", C, 4 * C), ("mlp.c_proj", 4 * C, C)]:
            p[h + name + ".weight"] = normal(fan_in, fan_out)
            p[h + name + ".bias"] = normal(fan_out)
    norm_params(p, "ln_f", C)
    tokens = torch.randint(V, (B, T), dtype=torch.int32)
    targets = torch.randint(V, (B, T), dtype=torch.int32)
    targets[0, :5] = -100

    def loss(p):
        linear = lambda name, x: x @ p[name + ".weight"] + p[name + ".bias"]
        x = p["wte.weight"][tokens.long()] + p["wpe.weight"]
        for i in range(L):
            h = f"h.{i}."
            qkv = linear(h + "attn.c_attn", layer_norm(p, h + "ln_1", x, 1e-5))
            x = x + linear(h + "attn.c_proj", attention(*qkv.split(C, dim=2), H, True))
            hidden = F.gelu(linear(h + "mlp.c_fc", layer_norm(p, h + "ln_2", x, 1e-5)), approximate="tanh")
            x = x + linear(h + "mlp.c_proj", hidden)
        logits = layer_norm(p, "ln_f", x, 1e-5) @ p["wte.weight"].T
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten().long(), reduction="sum")

    return p, {"tokens": tokens, "targets": targets}, loss, int((targets >= 0).sum())


def encoder():
    L, C, H, V, B, T = 2, 24, 3, 40, 4, 11
    e = "embeddings."
    p = {e + "word_embeddings.weight": normal(V, C), e + "position_embeddings.weight": normal(T, C), e + "token_type_embeddings.weight": normal(2, C)}
    norm_params(p, e + "LayerNorm", C)

    def linear_params(name, fan_in, fan_out):
        p[name + ".weight"] = normal(fan_out, fan_in)
        p[name + ".bias"] = normal(fan_out)

    for i in range(L):
        n = f"encoder.layer.{i}."
        for part in ("query", "key", "value"):
            linear_params(n + "attention.self." + part, C, C)
        linear_params(n + "attention.output.dense", C, C)
        norm_params(p, n + "attention.output.LayerNorm", C)
        linear_params(n + "intermediate.dense", C, 4 * C)
        linear_params(n + "output.dense", 4 * C, C)
        norm_params(p, n + "output.LayerNorm", C)
    linear_params("pooler.dense", C, C)
    linear_params("classifier", C, 3)
    tokens = torch.randint(V, (B, T), dtype=torch.int32)
    segments = torch.randint(2, (B, T), dtype=torch.int32)
    labels = torch.randint(3, (B,), dtype=torch.int32)

    def loss(p):
        linear = lambda name, x: F.linear(x, p[name + ".weight"], p[name + ".bias"])
        x = p[e + "word_embeddings.weight"][tokens.long()] + p[e + "position_embeddings.weight"] + p[e + "token_type_embeddings.weight"][segments.long()]
        x = layer_norm(p, e + "LayerNorm", x, 1e-12)
        for i in range(L):
            n = f"encoder.layer.{i}."
            q, k, v = (linear(n + "attention.self." + part, x) for part in ("query", "key", "value"))
            x = layer_norm(p, n + "attention.output.LayerNorm", x + linear(n + "attention.output.dense", attention(q, k, v, H, False)), 1e-12)
            x = layer_norm(p, n + "output.LayerNorm", x + linear(n + "output.dense", F.gelu(linear(n + "intermediate.dense", x))), 1e-12)
        logits = linear("classifier", torch.tanh(linear("pooler.dense", x[:, 0])))
        return F.cross_entropy(logits, labels.long(), reduction="sum")

    return p, {"tokens": tokens, "segments": segments, "labels": labels}, loss, B


def tabular():
    tables, rows, C, dense_features, B = 3, 11, 8, 5, 13
    bottom, top = [16, 12, C], [16, 12, 1]
    p = {f"table.{i}.weight": normal(rows, C, std=0.5) for i in range(tables)}
    pairs = (tables + 1) * tables // 2
    for name, widths in (("bottom", [dense_features] + bottom), ("top", [C + pairs] + top)):
        for i, (fan_in, fan_out) in enumerate(zip(widths, widths[1:])):
            p[f"{name}.{i}.weight"] = normal(fan_out, fan_in, std=0.3)
            p[f"{name}.{i}.bias"] = normal(fan_out)
    inputs = {"dense": torch.randn(B, dense_features), "labels": torch.randint(2, (B,)).float()}
    for i in range(tables):
        inputs[f"category.{i}"] = torch.randint(rows, (B,), dtype=torch.int32)

    def loss(p):
        linear = lambda name, x: F.linear(x, p[name + ".weight"], p[name + ".bias"])
        x = inputs["dense"]
        for i in range(len(bottom)):
            x = F.relu(linear(f"bottom.{i}", x))
        features = torch.stack([x] + [p[f"table.{i}.weight"][inputs[f"category.{i}"].long()] for i in range(tables)], dim=1)
        products = features @ features.transpose(1, 2)
        below = torch.tril_indices(tables + 1, tables + 1, offset=-1)
        x = torch.cat([x, products[:, below[0], below[1]]], dim=1)
        for i in range(len(top) - 1):
            x = F.relu(linear(f"top.{i}", x))
        return F.binary_cross_entropy_with_logits(linear(f"top.{len(top) - 1}", x)[:, 0], inputs["labels"], reduction="sum")

    return p, inputs, loss, B


def resnet():
    width, image, classes, B = 4, 64, 7, 4
    p = {}
    images = torch.randn(B, image, image, 3)
    labels = torch.randint(classes, (B,), dtype=torch.int32)

    def conv_params(name, fan_in, fan_out, k):
        p[name + ".weight"] = normal(fan_out, k, k, fan_in, std=(2.0 / (fan_out * k * k)) ** 0.5)

    conv_params("conv1", 3, width, 7)
    norm_params(p, "bn1", width)
    plan, fan_in = [], width
    for stage in range(4):
        for i in range(2):
            fan_out, stride = width << stage, 2 if stage > 0 and i == 0 else 1
            n = f"layer{stage + 1}.{i}."
            plan.append((n, fan_in, fan_out, stride))
            conv_params(n + "conv1", fan_in, fan_out, 3)
            norm_params(p, n + "bn1", fan_out)
            conv_params(n + "conv2", fan_out, fan_out, 3)
            norm_params(p, n + "bn2", fan_out)
            if stride != 1 or fan_in != fan_out:
                conv_params(n + "downsample.0", fan_in, fan_out, 1)
                norm_params(p, n + "downsample.1", fan_out)
            fan_in = fan_out
    p["fc.weight"] = normal(classes, fan_in)
    p["fc.bias"] = normal(classes)

    def loss(p):
        def conv(name, x, stride):
            filter = p[name + ".weight"].permute(0, 3, 1, 2)
            return F.conv2d(x, filter, stride=stride, padding=filter.shape[-1] // 2)

        def norm(name, x):
            mean = statistics.setdefault(name + ".running_mean", torch.zeros(x.shape[1]))
            var = statistics.setdefault(name + ".running_var", torch.ones(x.shape[1]))
            return F.batch_norm(x, mean, var, p[name + ".weight"], p[name + ".bias"], training=True, momentum=0.1, eps=1e-5)

        x = F.relu(norm("bn1", conv("conv1", images.permute(0, 3, 1, 2), 2)))
        x = F.max_pool2d(x, 3, 2, padding=1)
        for n, fan_in, fan_out, stride in plan:
            y = F.relu(norm(n + "bn1", conv(n + "conv1", x, stride)))
            y = norm(n + "bn2", conv(n + "conv2", y, 1))
            if stride != 1 or fan_in != fan_out:
                x = norm(n + "downsample.1", conv(n + "downsample.0", x, stride))
            x = F.relu(y + x)
        logits = F.linear(x.mean(dim=(2, 3)), p["fc.weight"], p["fc.bias"])
        return F.cross_entropy(logits, labels.long(), reduction="sum")

    return p, {"images": images, "labels": labels}, loss, B


def llama_of_transformers(H, Hkv, theta, eps, tied):
    from transformers import LlamaConfig, LlamaForCausalLM

    L, C, hidden, V, B, T = 2, 24, 40, 50, 3, 17
    config = LlamaConfig(
        vocab_size=V, hidden_size=C, intermediate_size=hidden, num_hidden_layers=L, num_attention_heads=H,
        num_key_value_heads=Hkv, max_position_embeddings=T, rope_parameters={"rope_type": "default", "rope_theta": theta},
        rms_norm_eps=eps, tie_word_embeddings=tied, use_cache=False, attn_implementation="eager")  # fmt: skip
    model = LlamaForCausalLM(config)
    frequencies = theta ** (-torch.arange(0, C // H, 2) / (C // H))
    assert torch.allclose(model.model.rotary_emb.inv_freq, frequencies), "another transformers reads rope_theta elsewhere"
    p = {}
    for name, tensor in model.named_parameters():
        p[name] = 1 + normal(*tensor.shape) if tensor.dim() == 1 else normal(*tensor.shape)
    tokens = torch.randint(V, (B, T), dtype=torch.int32)
    targets = torch.randint(V, (B, T), dtype=torch.int32)
    targets[0, :5] = -100

    def loss(p):
        logits = torch.func.functional_call(model, p, (tokens.long(),)).logits
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten().long(), reduction="sum")

    return p, {"tokens": tokens, "targets": targets}, loss, int((targets >= 0).sum())


def llama():
    return llama_of_transformers(H=6, Hkv=2, theta=10000.0, eps=1e-5, tied=False)


def llama_tied():
    return llama_of_transformers(H=3, Hkv=1, theta=500.0, eps=1e-3, tied=True)


def decayed(name, tensor):
    return tensor.dim() > 1


def main():
    for seed, build in enumerate((gpt, encoder, tabular, resnet, llama, llama_tied)):
        if sys.argv[1:] and build.__name__ not in sys.argv[1:]:
            continue
        torch.manual_seed(seed)
        params, inputs, loss, count = build()
        params = {name: value.clone().requires_grad_() for name, value in params.items()}
        out = {f"param.{n}": t.clone() for n, t in params.items()} | {f"input.{n}": t for n, t in inputs.items()}
        total = loss(params)
        total.backward()
        out["loss"] = (total / count).detach()
        out |= {f"grad.{n}": t.grad.clone() for n, t in params.items()}
        groups = [{"params": [t for n, t in params.items() if decayed(n, t)], "weight_decay": 0.01},
                  {"params": [t for n, t in params.items() if not decayed(n, t)], "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=1e-3)
        statistics.clear()
        for _ in range(3):
            optimizer.zero_grad()
            (loss(params) / count).backward()
            torch.nn.utils.clip_grad_norm_(params.values(), 1.0)
            optimizer.step()
        out |= {f"after.{n}": t.detach().clone() for n, t in params.items()}
        out |= {f"running.{n}": t.clone() for n, t in statistics.items()}
        save(HERE / f"{build.__name__}.safetensors", out)


if __name__ == "__main__":
    main()
