"""What a peer needs of Lockstep to train on the same data from the same weights: the order of records and a reader
of its checkpoints' tensors.

Both are written from their description (src/data/order.h, the safetensors format), not called: a comparison of
losses then also compares these. Only the standard library and torch are used.
"""

import json
import pathlib
import struct

import torch

MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1
ORDER_STREAM = 0x6F72646572000000


def philox_word(seed, stream, index):
    """Word `index` of the stream: Philox4x32-10 with the seed as key and (index / 4, stream) as counter."""
    block = index // 4
    c = [block & MASK32, block >> 32, stream & MASK32, stream >> 32]
    k0, k1 = seed & MASK32, seed >> 32
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(second >> 32) ^ c[1] ^ k0, second & MASK32, (first >> 32) ^ c[3] ^ k1, first & MASK32]
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return c[index % 4]


def mix(x):
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x = ((x ^ (x >> 33)) * factor) & MASK64
    return x ^ (x >> 33)


class Order:
    """record_at(position): a keyed Feistel network over the records, another permutation in every epoch."""

    def __init__(self, seed, size):
        self.seed = seed
        self.size = size
        bits = max((size - 1).bit_length(), 6)
        self.widths = (bits // 2, bits - bits // 2)
        self.keys = {}

    def record_at(self, position):
        epoch, value = divmod(position, self.size)
        if epoch not in self.keys:
            words = [philox_word(self.seed, ORDER_STREAM ^ epoch, i) for i in range(12)]
            self.keys[epoch] = [high << 32 | low for low, high in zip(words[::2], words[1::2])]
        value = self.encrypt(value, self.keys[epoch])
        while value >= self.size:
            value = self.encrypt(value, self.keys[epoch])
        return value

    def encrypt(self, value, keys):
        left_bits, right_bits = self.widths
        left, right = value >> right_bits, value & ((1 << right_bits) - 1)
        for key in keys:
            left, right = right, left ^ (mix(right ^ key) >> (64 - left_bits))
            left_bits, right_bits = right_bits, left_bits
        return left << right_bits | right


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
