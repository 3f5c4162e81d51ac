"""Writes the golden states that hf_encoder_golden_test.cc compares with: tiny encoders of Hugging Face transformers with
drawn weights, fp32 on the CPU, eager attention, no dropout.

A file holds, under the names that save_pretrained gives: param.* (before), grad.* (of the summed loss), input.* (as our
graphs take them), logits, loss (the mean) and losses (of 20 AdamW steps on the same batch, clipped to norm 1, nothing but
matrices decayed). Its metadata has config.json as `config` and the version of transformers.
Run: python tests/golden/make_hf_encoder_golden.py [NAME...]   (needs torch, transformers, safetensors)
"""

import pathlib
import sys
import tempfile

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file
from transformers import (BertConfig, BertForMaskedLM, BertForSequenceClassification, BertForTokenClassification,
                          DistilBertConfig, DistilBertForMaskedLM, DistilBertForSequenceClassification,
                          DistilBertForTokenClassification, RobertaConfig, RobertaForMaskedLM,
                          RobertaForSequenceClassification, RobertaForTokenClassification, ViTConfig,
                          ViTForImageClassification)

HERE = pathlib.Path(__file__).parent / "hf"
STEPS = 20
B, T, V, CLASSES = 3, 11, 40, 4
BERT = dict(vocab_size=V, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
            max_position_embeddings=20, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)  # fmt: skip
DISTIL = dict(vocab_size=V, dim=16, n_layers=2, n_heads=4, hidden_dim=24, max_position_embeddings=20, dropout=0.0,
              attention_dropout=0.0, seq_classif_dropout=0.0)  # fmt: skip
VIT = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, image_size=16,
           hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)  # fmt: skip


def saved(model):
    """The model's tensors and its config, as a folder has them."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tensors = load_file(pathlib.Path(folder) / "model.safetensors")
        return tensors, (pathlib.Path(folder) / "config.json").read_text()


def saved_grads(model):
    """The gradients under the names that the folder has for their parameters."""
    kept = {p: p.data for p in model.parameters()}
    for p in model.parameters():
        p.data = p.grad if p.grad is not None else torch.zeros_like(p)
    tensors, _ = saved(model)
    for p, data in kept.items():
        p.data = data
    return tensors


def draw(model):
    for name, p in model.named_parameters():
        noise = torch.randn_like(p)
        is_norm = p.dim() == 1 and name.endswith("weight")
        p.data = 1 + 0.1 * noise if is_norm else (0.1 if p.dim() == 1 else 0.3) * noise


def text_inputs(pad, padded, types, pads_inside=False):
    """Rows of different lengths, filled up with the pad token; or full rows in which it stands anywhere."""
    tokens = torch.randint(3, V, (B, T))
    visible = torch.ones(B, T, dtype=torch.long)
    if padded:
        visible = (torch.arange(T)[None, :] < torch.tensor([[T], [6], [9]])).long()
        tokens[visible == 0] = pad
    if pads_inside:
        tokens[0, 3] = tokens[1, 0] = tokens[2, 5] = pad
    call = {"input_ids": tokens}
    ours = {"tokens": tokens}
    if padded:
        call["attention_mask"] = visible
        ours["keys_visible"] = visible.to(torch.uint8)
    if types:
        call["token_type_ids"] = ours["segments"] = torch.randint(types, (B, T))
    return call, ours, visible


def text_case(model, head, pad, padded=True, types=0, pads_inside=False):
    call, ours, visible = text_inputs(pad, padded, types, pads_inside)
    if head == "sequence":
        labels = torch.randint(CLASSES, (B,))
    else:
        labels = torch.randint(V if head == "masked" else CLASSES, (B, T))
        labels[visible == 0] = -100
        labels[torch.rand(B, T) < 0.4] = -100
    ours["labels" if head == "sequence" else "targets"] = labels
    return model, call, ours, labels


def vit_case(**config):
    model = ViTForImageClassification(ViTConfig(**VIT, num_labels=CLASSES, **config))
    images = torch.randn(B, 16, 16, config.get("num_channels", 3))
    labels = torch.randint(CLASSES, (B,))
    return model, {"pixel_values": images.permute(0, 3, 1, 2)}, {"images": images, "labels": labels}, labels


CASES = {
    "bert_masked": lambda: text_case(BertForMaskedLM(BertConfig(**BERT)), "masked", 0, types=2),
    "bert_sequence": lambda: text_case(
        BertForSequenceClassification(BertConfig(**BERT, num_labels=CLASSES, hidden_act="gelu_new", type_vocab_size=3)),
        "sequence", 0, types=3),
    # No mask: the pad token is a token as others, whose row gets no gradient from the positions it stands in.
    "bert_token": lambda: text_case(
        BertForTokenClassification(BertConfig(**BERT, num_labels=CLASSES, hidden_act="relu", layer_norm_eps=1e-5,
                                              pad_token_id=2)),
        "token", 2, padded=False, types=2, pads_inside=True),
    "bert_masked_pads": lambda: text_case(BertForMaskedLM(BertConfig(**BERT)), "masked", 0, padded=False, types=2,
                                          pads_inside=True),
    "roberta_masked": lambda: text_case(
        RobertaForMaskedLM(RobertaConfig(**BERT, type_vocab_size=1, layer_norm_eps=1e-5, hidden_act="silu")),
        "masked", 1, types=1),
    "roberta_sequence": lambda: text_case(
        RobertaForSequenceClassification(RobertaConfig(**BERT, num_labels=CLASSES, type_vocab_size=1)),
        "sequence", 1, types=1, pads_inside=True),
    "roberta_token": lambda: text_case(
        RobertaForTokenClassification(RobertaConfig(**BERT, num_labels=CLASSES, pad_token_id=3)),
        "token", 3, padded=False, types=2, pads_inside=True),
    "distilbert_masked": lambda: text_case(DistilBertForMaskedLM(DistilBertConfig(**DISTIL)), "masked", 0),
    "distilbert_sequence": lambda: text_case(
        DistilBertForSequenceClassification(DistilBertConfig(**DISTIL, num_labels=CLASSES, activation="relu")),
        "sequence", 0, pads_inside=True),
    "distilbert_token": lambda: text_case(
        DistilBertForTokenClassification(DistilBertConfig(**DISTIL, num_labels=CLASSES)),
        "token", 0, padded=False),
    "vit": lambda: vit_case(patch_size=4),
    "vit_no_bias": lambda: vit_case(patch_size=8, num_channels=1, qkv_bias=False, layer_norm_eps=1e-6,
                                    hidden_act="gelu_pytorch_tanh"),
}


def make(name, seed):
    torch.manual_seed(seed)
    model, call, ours, labels = CASES[name]()
    model.config._attn_implementation = "eager"
    model = model.float().train()
    draw(model)
    count = int((labels != -100).sum())

    def run():
        result = model(**call, labels=labels)
        total = F.cross_entropy(result.logits.flatten(0, -2), labels.flatten(), reduction="sum")
        assert torch.allclose(total / count, result.loss, rtol=1e-5), "transformers has another loss"
        return result.logits, total

    params, config = saved(model)
    out = {f"param.{n}": t for n, t in params.items()}
    for n, t in ours.items():
        out[f"input.{n}"] = t.contiguous() if t.dtype in (torch.float32, torch.uint8) else t.to(torch.int32)
    logits, total = run()
    total.backward()
    out |= {f"grad.{n}": t for n, t in saved_grads(model).items()}
    out["logits"], out["loss"] = logits.detach().contiguous(), (total / count).detach().reshape(1)
    groups = [{"params": [p for p in model.parameters() if (p.dim() > 1) == decays],
               "weight_decay": 0.01 if decays else 0.0} for decays in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = run()[1] / count
        loss.backward()
        losses.append(loss.detach())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    out["losses"] = torch.stack(losses)
    path = HERE / f"{name}.safetensors"
    save_file(out, path, {"config": config, "transformers": transformers.__version__})
    path.chmod(0o644)
    print(f"{name}: loss {losses[0]:.5f} to {losses[-1]:.5f}, {len(params)} parameters")


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for seed, name in enumerate(CASES):
        if not sys.argv[1:] or name in sys.argv[1:]:
            make(name, seed)
