"""Encoders of Hugging Face both ways: folders of classifiers that transformers made are evaluated and tuned here, as a whole
and by LoRA; what is exported answers in transformers and PEFT as it does here. Texts are bytes and images are as large as
the model takes, so that both sides see the same numbers.
Called with the path of the program; exits with 77 (skipped) where the Python of LOCKSTEP_PEERS_PYTHON has no transformers
or peft.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

SKIPPED = 77
SEQ, CLASSES, ROWS, SIDE = 24, 3, 24, 16
TOLERANCE = 2e-5  # of losses in fp32


class Lab:
    """A folder with jobs, runs and exports."""

    def __init__(self, program, folder):
        self.program, self.folder, self.number = program, pathlib.Path(folder), 0

    def lockstep(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"lockstep {' '.join(map(str, arguments))}:\n{done.stderr}")

    def train(self, model, data, steps=4, rate=1e-2, more="", seq=None):
        self.number += 1
        run, job = self.folder / f"run{self.number}", self.folder / f"job{self.number}.yaml"
        job.write_text(f"""
model: {{hf: {model}{f', seq: {seq}' if seq else ''}}}
data: {{{data}}}
train: {{steps: {steps}, global_batch: 8, microbatch: 4, lr: {{base: {rate}}}, optimizer: {{weight_decay: 0}}{more}}}
output: {run}
""")
        self.lockstep("train", job)
        return run, json.loads((run / "summary.json").read_text())["final_eval"]["loss"]

    def export(self, run, to, *more):
        self.number += 1
        out = self.folder / f"{to}{self.number}"
        self.lockstep("export", run, "--to", to, "--out", out, *more)
        return out


class Texts:
    """Texts of three kinds. Their tokens are 0 and the bytes plus 1, filled up with 0, which is hidden."""

    def __init__(self, lab):
        import torch

        texts = [f"{['order', 'refund of', 'hi'][i % 3]} {i * 7919 % 1000}" for i in range(ROWS)]
        path = lab.folder / "mail.jsonl"
        path.write_text("".join(json.dumps({"subject": t, "kind": i % 3}) + "\n" for i, t in enumerate(texts)))
        part = f"format: jsonl, files: {path}"
        self.job = f"train: {{{part}, text: subject, label: kind}}, eval: {{{part}}}"
        tokens = torch.zeros(ROWS, SEQ, dtype=torch.long)
        visible = torch.zeros(ROWS, SEQ, dtype=torch.long)
        for i, text in enumerate(texts):
            ids = [0] + [b + 1 for b in text.encode()]
            tokens[i, :len(ids)] = torch.tensor(ids)
            visible[i, :len(ids)] = 1
        self.call = {"input_ids": tokens, "attention_mask": visible}
        self.labels = torch.arange(ROWS) % 3
        self.seq = SEQ


def png(image):
    """An array [3, side, side] of bytes."""

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    rows = b"".join(b"\0" + row.tobytes() for row in image.transpose(1, 2, 0))
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Images:
    """Images of three kinds as PNG files in a folder per class."""

    def __init__(self, lab):
        import numpy
        import torch

        draw = numpy.random.default_rng(3)
        pixels = []
        for i in range(ROWS):
            image = draw.integers(0, 256, (3, SIDE, SIDE), dtype=numpy.uint8)
            image[i // (ROWS // 3)] //= 4
            folder = lab.folder / "images" / "abc"[i // (ROWS // 3)]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{i:02d}.png").write_bytes(png(image))
            pixels.append(image)
        self.job = (f"train: {{format: images, files: {lab.folder / 'images'}}}, "
                    f"eval: {{format: images, files: {lab.folder / 'images'}}}")
        self.call = {"pixel_values": (torch.tensor(numpy.stack(pixels)).float() / 255 - 0.5) / 0.25}
        self.labels = torch.arange(ROWS) // (ROWS // 3)
        self.seq = None


def models():
    import transformers as t

    bert = dict(vocab_size=300, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                max_position_embeddings=SEQ + 2, num_labels=CLASSES, hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0)  # fmt: skip
    yield "bert", t.BertForSequenceClassification(t.BertConfig(**bert)), Texts
    # Both sides fill rows up with 0, which is no padding to it: positions are counted on, behind what is seen.
    yield "roberta", t.RobertaForSequenceClassification(t.RobertaConfig(**bert)), Texts
    yield "distilbert", t.DistilBertForSequenceClassification(t.DistilBertConfig(
        vocab_size=300, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=SEQ, num_labels=CLASSES,
        dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0)), Texts
    yield "vit", t.ViTForImageClassification(t.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=SIDE, patch_size=4,
        num_labels=CLASSES)), Images


def open_model(model, folder):
    return type(model).from_pretrained(folder, attn_implementation="eager").float().eval()


def expect(what, found, expected):
    if not abs(found - expected) <= TOLERANCE * max(1, abs(expected)):
        raise SystemExit(f"{what}: {found} and {expected} differ by {abs(found - expected)}")


def check(lab, name, model, data):
    import peft
    import torch

    def loss(opened):
        with torch.no_grad():
            logits = opened(**data.call).logits.double()
        return torch.nn.functional.cross_entropy(logits, data.labels).item()

    folder = lab.folder / name
    with torch.no_grad():  # norms and biases that matter
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(
        {"size": {"height": SIDE, "width": SIDE}, "image_mean": [0.5] * 3, "image_std": [0.25] * 3}))
    _, found = lab.train(folder, data.job, steps=1, rate=0, seq=data.seq)
    expect(f"{name}: loss of the folder", found, loss(open_model(model, folder)))
    run, found = lab.train(folder, data.job, seq=data.seq)
    expect(f"{name}: loss of the export", found, loss(open_model(model, lab.export(run, "hf"))))
    expect(f"{name}: loss of the checkpoint", found, loss(open_model(model, run / "checkpoint-4")))
    run, found = lab.train(folder, data.job, more=", lora: {rank: 4, alpha: 8}", seq=data.seq)
    expect(f"{name}: loss of the merged model", found, loss(open_model(model, lab.export(run, "hf", "--merge"))))
    adapted = peft.PeftModel.from_pretrained(open_model(model, folder), lab.export(run, "peft")).eval()
    expect(f"{name}: loss of the adapter in PEFT", found, loss(adapted))
    print(f"{name}: the same in transformers and PEFT")


def main():
    try:
        import peft  # noqa: F401
        import torch
        import transformers
    except ImportError:
        sys.exit(SKIPPED)
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as temporary:
        lab = Lab(sys.argv[1], temporary)
        for name, model, data in models():
            torch.manual_seed(1)
            check(lab, name, model, data(lab))


if __name__ == "__main__":
    if os.environ.get("LOCKSTEP_PEERS_PYTHON") and sys.executable != os.environ["LOCKSTEP_PEERS_PYTHON"]:
        os.execv(os.environ["LOCKSTEP_PEERS_PYTHON"], [os.environ["LOCKSTEP_PEERS_PYTHON"], *sys.argv])
    main()
