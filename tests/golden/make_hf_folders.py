"""Writes tests/golden/hf_folders: small models as transformers saves them (one in several files, one with GPT-2's names and
order of axes), adapters as PEFT saves them, and the losses both give there. Run with a Python that has transformers and peft.
"""
import json
import pathlib
import shutil
import struct

import numpy
import peft
import torch
import transformers

HERE = pathlib.Path(__file__).parent / "hf_folders"
VOCAB, SEQ, ROWS = 48, 12, 4


def loss(model, rows):
    with torch.no_grad():
        logits = model(input_ids=rows[:, :-1], use_cache=False).logits.double()
    return torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), rows[:, 1:].reshape(-1)).item()


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    tokens = numpy.random.default_rng(11).integers(0, VOCAB, ROWS * SEQ + 1, dtype=numpy.uint16)
    body = tokens.tobytes()
    (HERE / "rows.bin").write_bytes(b"LOCKTOK\n" + struct.pack("<IIQQ", 1, 2, len(tokens), 1).ljust(56, b"\0") + body
                                    + bytes(-len(body) % 8) + struct.pack("<Q", len(tokens)))
    rows = torch.tensor(numpy.stack([tokens[i * SEQ:(i + 1) * SEQ + 1] for i in range(ROWS)]).astype(numpy.int64))
    configs = {
        "llama": (transformers.LlamaConfig(vocab_size=VOCAB, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
                                           num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32,
                                           initializer_range=0.3), ["q_proj", "down_proj"], "10KB"),
        "gpt2": (transformers.GPT2Config(vocab_size=VOCAB, n_embd=16, n_layer=2, n_head=4, n_positions=32, embd_pdrop=0,
                                         attn_pdrop=0, resid_pdrop=0, initializer_range=0.3), ["c_attn", "c_proj"], "5GB"),
    }
    expected = {}
    for name, (config, modules, shard) in configs.items():
        torch.manual_seed(4)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        model.save_pretrained(HERE / name, max_shard_size=shard)
        found = {"loss": loss(model, rows)}
        adapted = peft.get_peft_model(model, peft.LoraConfig(r=2, lora_alpha=6, target_modules=modules, task_type="CAUSAL_LM",
                                                             fan_in_fan_out=name == "gpt2", init_lora_weights=False)).eval()
        adapted.save_pretrained(HERE / f"{name}-adapter")
        (HERE / f"{name}-adapter" / "README.md").unlink(missing_ok=True)
        path = HERE / f"{name}-adapter" / "adapter_config.json"
        text = json.loads(path.read_text())
        text["base_model_name_or_path"] = name
        path.write_text(json.dumps(text, indent=2) + "\n")
        found["adapted"] = loss(adapted, rows)
        expected[name] = found
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
