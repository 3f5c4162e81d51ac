"""Writes the golden states of Hugging Face models that hf_decoder_golden_test.cc compares with: tiny seeded models of
transformers, fp32 on the CPU, eager attention, no dropout.

Per variant hf_decoders/NAME.json is the config.json that save_pretrained wrote (hf_decoders/NAME.v4.json the same in the keys of version
4), and hf_decoders/NAME.safetensors holds, under the names on disk: param.* (before), input.* (of our graph), logits, loss (the
model's own mean), grad.* (of the summed loss), losses (of 20 AdamW steps on the same batch: gradients of the mean,
clipped to norm 1) and, for some, loss_bf16 (of the model in bf16). Its metadata say which graph it is of.
Run: python tests/golden/make_hf_decoder_golden.py [NAME...]   (needs torch, transformers, safetensors)
"""

import json
import pathlib
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).parent / "hf_decoders"
V, C, T, B = 31, 16, 12, 2
STEPS = 20

gated = dict(vocab_size=V, hidden_size=C, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, bos_token_id=1, eos_token_id=2)  # fmt: skip
one_layer = gated | dict(num_hidden_layers=1, head_dim=8)


def rope(kind, theta=10000.0, **more):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=theta, **more))


neox = dict(vocab_size=V, hidden_size=C, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2,
            max_position_embeddings=64, hidden_dropout=0.0, attention_dropout=0.0)  # fmt: skip
gpt2 = dict(vocab_size=V, n_embd=C, n_layer=2, n_head=4, n_positions=16, embd_pdrop=0.0, resid_pdrop=0.0, attn_pdrop=0.0,
            bos_token_id=1, eos_token_id=2)  # fmt: skip
gemma = gated | dict(head_dim=8, query_pre_attn_scalar=24, sliding_window=4, pad_token_id=0)
factors = dict(short_factor=[1.0, 1.1, 1.5, 2.0], long_factor=[1.0, 1.5, 3.0, 5.0])

# name: (class, settings, how the graph is built)
VARIANTS = {
    "llama": ("Llama", gated | dict(pad_token_id=3, rms_norm_eps=1e-5), dict(bf16=True)),
    "llama_biases": ("Llama", gated | dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True, head_dim=8,
                                           pad_token_id=3, num_key_value_heads=1), {}),
    "llama_linear": ("Llama", one_layer | rope("linear", 500.0, factor=4.0), {}),
    "llama_dynamic": ("Llama", one_layer | rope("dynamic", factor=2.0) | dict(max_position_embeddings=8), {}),
    "llama_yarn": ("Llama", one_layer | rope("yarn", factor=4.0, original_max_position_embeddings=16), {}),
    "llama_yarn_mscale": ("Llama", one_layer | rope("yarn", 800.0, factor=8.0, original_max_position_embeddings=32, mscale=0.7,
                                                    mscale_all_dim=0.4, beta_fast=4.0, beta_slow=0.5, truncate=False), {}),
    "llama_longrope": ("Llama", one_layer | rope("longrope", original_max_position_embeddings=8, **factors), {}),
    "llama_longrope_short": ("Llama", one_layer | rope("longrope", factor=6.0, original_max_position_embeddings=12, **factors), {}),
    "llama_llama3": ("Llama", one_layer | rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                               original_max_position_embeddings=64), {}),
    "llama_documents": ("Llama", gated, dict(documents=True)),
    "llama_sequences": ("Llama", gated | dict(num_hidden_layers=1, pad_token_id=3, id2label={i: str(i) for i in range(3)}),
                        dict(head="SequenceClassification")),
    "llama_tokens": ("Llama", gated | dict(num_hidden_layers=1, id2label={i: str(i) for i in range(5)}, classifier_dropout=0.0),
                     dict(head="TokenClassification")),
    "mistral": ("Mistral", gated | dict(sliding_window=4, head_dim=8), {}),
    "mistral_unbounded": ("Mistral", gated | dict(num_hidden_layers=1, sliding_window=None), {}),
    "mistral_documents": ("Mistral", gated | dict(num_hidden_layers=1, sliding_window=3), dict(documents=True)),
    "qwen2": ("Qwen2", gated | dict(use_sliding_window=True, sliding_window=5, max_window_layers=1, tie_word_embeddings=True), {}),
    "qwen3": ("Qwen3", gated | dict(head_dim=8), {}),
    "qwen3_biases": ("Qwen3", gated | dict(num_hidden_layers=1, head_dim=12, attention_bias=True, tie_word_embeddings=True), {}),
    "gemma2": ("Gemma2", gemma | dict(attn_logit_softcapping=2.0, final_logit_softcapping=3.0), dict(bf16=True)),
    "gemma2_uncapped": ("Gemma2", gemma | dict(attn_logit_softcapping=None, final_logit_softcapping=None,
                                               tie_word_embeddings=False, num_hidden_layers=1), {}),
    "gemma3_text": ("Gemma3", gemma | dict(
        num_hidden_layers=3, layer_types=["sliding_attention", "sliding_attention", "full_attention"], rope_parameters={
            "full_attention": dict(rope_type="linear", factor=8.0, rope_theta=1000000.0),
            "sliding_attention": dict(rope_type="default", rope_theta=10000.0)}), {}),
    "gemma3": ("Gemma3", gemma | dict(num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"]),
               dict(head="ConditionalGeneration")),
    "phi3": ("Phi3", gated | dict(pad_token_id=3, sliding_window=5) | rope("longrope", partial_rotary_factor=0.5, short_factor=[1.0],
             long_factor=[2.5]) | dict(original_max_position_embeddings=8), {}),
    "phi3_plain": ("Phi3", gated | dict(num_hidden_layers=1, pad_token_id=3, tie_word_embeddings=True), {}),
    "olmo2": ("Olmo2", gated | dict(head_dim=8, pad_token_id=3), {}),
    "gpt2": ("GPT2", gpt2, {}),
    "gpt2_scaled": ("GPT2", gpt2 | dict(scale_attn_by_inverse_layer_idx=True, n_inner=20, activation_function="gelu",
                                        tie_word_embeddings=False, n_positions=12, layer_norm_epsilon=1e-3), {}),
    "gpt2_unscaled": ("GPT2", gpt2 | dict(n_layer=1, scale_attn_weights=False, activation_function="quick_gelu"), dict(documents=True)),
    "gpt2_sequences": ("GPT2", gpt2 | dict(n_layer=1, pad_token_id=3, id2label={i: str(i) for i in range(3)}),
                       dict(head="SequenceClassification")),
    "gpt_neox": ("GPTNeoX", neox | dict(rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25)), {}),
    "gpt_neox_serial": ("GPTNeoX", neox | dict(use_parallel_residual=False, attention_bias=False, tie_word_embeddings=True, rope_parameters=dict(
        rope_type="linear", factor=2.0, rope_theta=500.0, partial_rotary_factor=1.0)), {}),
}  # fmt: skip


def make_model(name):
    family, settings, graph = VARIANTS[name]
    head = graph.get("head", "LMHeadModel" if family == "GPT2" else "CausalLM")
    cls = getattr(transformers, f"{family}{'For' if 'LMHead' not in head else ''}{head}")
    text = getattr(transformers, f"{family}TextConfig" if family == "Gemma3" else f"{family}Config")
    config = text(use_cache=False, **settings)
    if head == "ConditionalGeneration":
        vision = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4)
        config = transformers.Gemma3Config(text_config=config, vision_config=vision, mm_tokens_per_image=4)
    model = cls._from_config(config, attn_implementation="eager", dtype=torch.float32)
    plain = 0.0 if family.startswith("Gemma") else 1.0
    with torch.no_grad():
        for key, p in model.named_parameters():
            is_norm = p.dim() == 1 and key.endswith("weight")
            p.copy_((plain if is_norm else 0.0) + 0.2 * torch.randn_like(p))
    return model.train()


def disk_names(model):
    """The name of every parameter in the file that save_pretrained writes, found by its values; and config.json."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        disk = load_file(pathlib.Path(folder) / "model.safetensors")
        config = json.loads((pathlib.Path(folder) / "config.json").read_text())
    names = {}
    for name, value in disk.items():
        if name.startswith(("vision_tower.", "multi_modal_projector.")):
            continue
        found = [p for p in model.parameters() if p.shape == value.shape and torch.equal(p, value)]
        assert len(found) == 1, name
        names[name] = found[0]
    others = [n for n, _ in model.named_parameters() if "vision" in n or "multi_modal" in n]
    assert len(names) + len(others) == len(list(model.parameters()))
    return names, config


def version4(config):
    """The same in the keys that transformers 4 writes."""
    config = dict(config)
    if "text_config" in config:
        config["text_config"] = version4(config["text_config"])
    config["torch_dtype"] = config.pop("dtype")
    rope = config.pop("rope_parameters", None)
    if rope is not None and "full_attention" in rope:
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = rope["full_attention"]
        config["sliding_window_pattern"] = config.pop("layer_types").index("full_attention") + 1
    if rope is not None:
        rope = dict(rope)
        neox = config["model_type"] == "gpt_neox"
        config["rotary_emb_base" if neox else "rope_theta"] = rope.pop("rope_theta")
        if "partial_rotary_factor" in rope:
            config["rotary_pct" if neox else "partial_rotary_factor"] = rope.pop("partial_rotary_factor")
        if rope.get("rope_type", "default") != "default":
            if rope["rope_type"] in ("linear", "dynamic"):
                rope["type"] = rope.pop("rope_type")
            config["rope_scaling"] = rope
    return config


def batch_of(name, config):
    """Inputs of our graph, arguments of theirs, and how many terms the loss has."""
    graph = VARIANTS[name][2]
    config = config.get("text_config", config)
    tokens = torch.randint(4, V, (B, T))
    inputs, arguments = {"tokens": tokens}, {"input_ids": tokens}
    if config.get("pad_token_id") is not None:
        tokens[0, -3:] = config["pad_token_id"]  # behind the text, and once inside it
        tokens[1, 4] = config["pad_token_id"]
    if graph.get("documents"):
        lengths = [[5, 4, 3], [1, 11]]
        positions = torch.cat([torch.arange(n) for row in lengths for n in row]).view(B, T)
        inputs["positions"] = arguments["position_ids"] = positions
        inputs["documents"] = torch.tensor([[i for i, n in enumerate(row) for _ in range(n)] for row in lengths])
    head = graph.get("head", "CausalLM")
    if head == "SequenceClassification":
        inputs["labels"] = arguments["labels"] = torch.tensor([2, 0])
        return inputs, arguments, B
    if head == "TokenClassification":
        labels = torch.randint(0, 5, (B, T))
        labels[1, :4] = -100
        inputs["targets"] = arguments["labels"] = labels
        return inputs, arguments, int((labels >= 0).sum())
    if graph.get("head") == "ConditionalGeneration":
        arguments["token_type_ids"] = torch.zeros_like(tokens)
    labels = tokens.clone()
    labels[0, :3] = -100
    arguments["labels"] = labels
    inputs["targets"] = torch.cat([labels[:, 1:], torch.full((B, 1), -100)], dim=1)
    return inputs, arguments, int((inputs["targets"] >= 0).sum())


def make(name, seed):
    torch.manual_seed(seed)
    model = make_model(name)
    names, config = disk_names(model)
    inputs, arguments, count = batch_of(name, config)
    out = {f"param.{n}": p.detach().clone() for n, p in names.items()}
    out |= {f"input.{n}": t.to(torch.int32) for n, t in inputs.items()}
    graph = VARIANTS[name][2]
    if graph.get("bf16"):
        import copy
        with torch.no_grad():
            out["loss_bf16"] = copy.deepcopy(model).bfloat16()(**arguments).loss.float().reshape(1)
    answer = model(**arguments)
    answer.loss.backward()
    out |= {"logits": answer.logits.detach().clone(), "loss": answer.loss.detach().reshape(1)}
    out |= {f"grad.{n}": p.grad * count for n, p in names.items()}
    for p in model.parameters():  # a tower for images, which saw none
        p.requires_grad_(any(p is q for q in names.values()))
    groups = [{"params": [p for p in names.values() if p.dim() > 1], "weight_decay": 0.01},
              {"params": [p for p in names.values() if p.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(**arguments).loss
        loss.backward()
        losses.append(loss.detach())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    out["losses"] = torch.stack(losses)
    HERE.mkdir(exist_ok=True)
    metadata = {"batch": str(B), "seq": str(T), "documents": str(int(bool(graph.get("documents"))))}
    save_file({k: v.contiguous() for k, v in out.items()}, HERE / f"{name}.safetensors", metadata)
    for suffix, text in (("json", config), ("v4.json", version4(config))):
        (HERE / f"{name}.{suffix}").write_text(json.dumps(text, indent=1, sort_keys=True) + "\n")


def main():
    transformers.logging.set_verbosity_error()
    for seed, name in enumerate(VARIANTS):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        make(name, seed)
        print(name)


if __name__ == "__main__":
    main()
