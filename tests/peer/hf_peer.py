"""Hugging Face folders both ways: models that transformers made are tuned here and exported, and transformers gives the
logits that `lockstep` trains with; adapters of PEFT are continued here, and adapters from here open in PEFT; merged models
answer as adapted ones. Called with the path of the program; exits with 77 (skipped) where the Python of
LOCKSTEP_PEERS_PYTHON has no transformers or peft.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77
VOCAB, SEQ, ROWS = 96, 16, 8
TOLERANCE = 2e-5  # of logits and losses in fp32

DATA = """
data:
  train: {{format: tokens, files: {data}}}
  eval: {{format: tokens, files: {data}}}
train: {{steps: {steps}, global_batch: 8, microbatch: 4, lr: {{base: {rate}}}, optimizer: {{weight_decay: 0}}{more}}}
"""


def configs():
    """Small models of each family that the program says it knows."""
    import transformers as t

    sizes = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                 max_position_embeddings=64)
    gated = dict(sizes, num_key_value_heads=2)
    return {
        "llama": t.LlamaConfig(**gated),
        "llama_tied": t.LlamaConfig(**gated, tie_word_embeddings=True),
        "mistral": t.MistralConfig(**gated, sliding_window=8, head_dim=8),
        "qwen2": t.Qwen2Config(**gated),
        "qwen3": t.Qwen3Config(**gated, head_dim=8),
        "gemma2": t.Gemma2Config(**gated, head_dim=8, sliding_window=8, query_pre_attn_scalar=8),
        "gemma3_text": t.Gemma3TextConfig(**gated, head_dim=8, sliding_window=8, query_pre_attn_scalar=8),
        "gpt2": t.GPT2Config(vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=4, n_positions=64, embd_pdrop=0, attn_pdrop=0,
                             resid_pdrop=0),
        "gpt_neox": t.GPTNeoXConfig(**sizes, attention_dropout=0, hidden_dropout=0),
    }


class Lab:
    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)
        self.runs = 0
        import numpy

        # One document; row i of the data holds the tokens [i SEQ, i SEQ + SEQ + 1).
        tokens = numpy.random.default_rng(3).integers(0, VOCAB, ROWS * SEQ + 1, dtype=numpy.uint16)
        self.rows = numpy.stack([tokens[i * SEQ:(i + 1) * SEQ + 1] for i in range(ROWS)]).astype(numpy.int64)
        body = tokens.tobytes()
        self.data = self.folder / "rows.bin"
        self.data.write_bytes(b"LOCKTOK\n" + struct.pack("<IIQQ", 1, 2, len(tokens), 1).ljust(56, b"\0") + body
                              + bytes(-len(body) % 8) + struct.pack("<Q", len(tokens)))

    def lockstep(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"lockstep {' '.join(map(str, arguments))}:\n{done.stderr}")
        return done.stdout

    def knows(self, model):
        return "yes: model:" in self.lockstep("inspect", model)

    def train(self, model, steps=3, rate=1e-3, more=""):
        self.runs += 1
        run = self.folder / f"run{self.runs}"
        job = self.folder / f"job{self.runs}.yaml"
        job.write_text(f"model: {{hf: {model}, seq: {SEQ}}}\noutput: {run}\n"
                       + DATA.format(data=self.data, steps=steps, rate=rate, more=more))
        self.lockstep("train", job)
        summary = json.loads((run / "summary.json").read_text())
        return run, summary["final_eval"]["loss"]

    def export(self, run, to, *more):
        self.runs += 1
        out = self.folder / f"{to}{self.runs}"
        self.lockstep("export", run, "--to", to, "--out", out, *more)
        return out

    def loss(self, model):
        """As the evaluation has it: the mean over all targets."""
        import torch

        tokens = torch.tensor(self.rows)
        with torch.no_grad():
            logits = model(input_ids=tokens[:, :-1], use_cache=False).logits.double()
        return torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), tokens[:, 1:].reshape(-1)).item()


def expect(what, found, expected, tolerance=TOLERANCE):
    if not abs(found - expected) <= tolerance * max(1, abs(expected)):
        raise SystemExit(f"{what}: {found} and {expected} differ by {abs(found - expected)}")


def open_model(folder, dtype="float32"):
    import torch
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype),
                                                             attn_implementation="eager").eval()


def full_tuning(lab, name, folder):
    """Before, after, out of a checkpoint, in one file and in several."""
    untouched, loss = lab.train(folder, steps=1, rate=0)
    expect(f"{name}: loss of the folder", loss, lab.loss(open_model(folder)))
    run, loss = lab.train(folder)
    exported = lab.export(run, "hf")
    expect(f"{name}: loss of the export", loss, lab.loss(open_model(exported)))
    expect(f"{name}: loss of the shards", loss, lab.loss(open_model(lab.export(run, "hf", "--shard-size", "20kB"))))
    expect(f"{name}: loss of the checkpoint", loss, lab.loss(open_model(run / "checkpoint-3")))
    check_tensors(name, folder, exported)


def check_tensors(name, before, after):
    """The same names and shapes as transformers wrote itself, and no others."""
    from safetensors import safe_open

    with safe_open(before / "model.safetensors", "np") as a, safe_open(after / "model.safetensors", "np") as b:
        if set(a.keys()) != set(b.keys()):
            raise SystemExit(f"{name}: tensors differ: {set(a.keys()) ^ set(b.keys())}")
        for key in a.keys():
            if a.get_slice(key).get_shape() != b.get_slice(key).get_shape():
                raise SystemExit(f"{name}: {key} has another shape")


def adapters(lab, name, folder):
    import peft

    run, loss = lab.train(folder, rate=1e-2, more=", lora: {rank: 4, alpha: 8}")
    ours = lab.export(run, "peft")
    adapted = peft.PeftModel.from_pretrained(open_model(folder), ours).eval()
    expect(f"{name}: loss of our adapter in PEFT", lab.loss(adapted), loss)
    merged = lab.export(run, "hf", "--merge")
    expect(f"{name}: loss of the merged model", lab.loss(open_model(merged)), loss)
    # PEFT's own, with matrices that are not zero.
    import torch

    torch.manual_seed(5)
    layers = sorted({key.split(".")[-1] for key, module in open_model(folder).named_modules()
                     if type(module).__name__ in ("Linear", "Conv1D") and "head" not in key and "embed_out" not in key})
    config = peft.LoraConfig(r=3, lora_alpha=7, use_rslora=True, target_modules=layers[:2], task_type="CAUSAL_LM",
                             init_lora_weights=False)
    theirs = peft.get_peft_model(open_model(folder), config).eval()
    theirs.save_pretrained(lab.folder / f"{name}-theirs")
    _, loss = lab.train(folder, steps=1, rate=0, more=f", lora: {{from: {lab.folder / f'{name}-theirs'}}}")
    expect(f"{name}: loss of PEFT's adapter here", loss, lab.loss(theirs))


def encoders():
    """Models that classify: class, config, a module to adapt."""
    import transformers as t

    sizes = dict(vocab_size=300, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                 max_position_embeddings=64)
    return {
        "bert": (t.BertForSequenceClassification, t.BertConfig(**sizes, num_labels=3)),
        "roberta": (t.RobertaForSequenceClassification, t.RobertaConfig(**dict(sizes, max_position_embeddings=66), num_labels=3)),
        "distilbert": (t.DistilBertForSequenceClassification,
                       t.DistilBertConfig(vocab_size=300, dim=32, hidden_dim=48, n_layers=2, n_heads=4,
                                          max_position_embeddings=64, num_labels=3)),
        "vit": (t.ViTForImageClassification,
                t.ViTConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=32,
                            patch_size=8, num_labels=3)),
    }


def classifier(lab, name, kind, folder):
    """Bytes survive the way in and out, and PEFT finds every matrix of our adapters where it looks for it."""
    import peft
    import torch
    from safetensors import safe_open

    job = lab.folder / f"{name}.yaml"

    def train(run, more, rate):
        job.write_text(f"model: {{hf: {folder}{'' if name == 'vit' else ', seq: 16'}}}\noutput: {run}\n"
                       "data: {train: {format: synthetic, samples: 64}}\n"
                       f"train: {{steps: 2, global_batch: 8, microbatch: 4, lr: {{base: {rate}}}, optimizer: {{weight_decay: 0}}"
                       f"{more}}}\n")
        lab.lockstep("train", job)
        return run

    exported = lab.export(train(lab.folder / f"{name}-rest", "", 0), "hf")
    check_tensors(name, folder, exported)
    with safe_open(folder / "model.safetensors", "np") as a, safe_open(exported / "model.safetensors", "np") as b:
        for key in a.keys():
            if a.get_tensor(key).tobytes() != b.get_tensor(key).tobytes():
                raise SystemExit(f"{name}: {key} changed on its way")
    kind.from_pretrained(exported)
    run = train(lab.folder / f"{name}-lora", ", lora: {rank: 4}", 0.01)
    adapter = lab.export(run, "peft")
    adapted = peft.PeftModel.from_pretrained(kind.from_pretrained(folder), adapter)
    found = {key: value for key, value in adapted.named_parameters() if "lora_B" in key}
    with safe_open(adapter / "adapter_model.safetensors", "pt") as file:
        wanted = [key for key in file.keys() if "lora_B" in key]
        if len(found) != len(wanted) or not wanted:
            raise SystemExit(f"{name}: PEFT has {len(found)} matrices, the adapter {len(wanted)}")
        for key in wanted:
            if not torch.equal(found[key.replace(".weight", ".default.weight")], file.get_tensor(key)):
                raise SystemExit(f"{name}: PEFT did not take {key}")
    # Back again, under PEFT's own names.
    adapted.save_pretrained(lab.folder / f"{name}-theirs")
    again = train(lab.folder / f"{name}-again", f", lora: {{from: {lab.folder / f'{name}-theirs'}}}", 0)
    hashes = [json.loads((one / "summary.json").read_text())["weights_sha256"] for one in (run, again)]
    if hashes[0] != hashes[1]:
        raise SystemExit(f"{name}: the adapter changed on its way through PEFT")


def main():
    try:
        import peft  # noqa: F401
        import transformers
    except ImportError:
        sys.exit(SKIPPED)
    import torch

    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as temporary:
        lab = Lab(sys.argv[1], temporary)
        for name, config in configs().items():
            torch.manual_seed(1)
            model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
            with torch.no_grad():  # norms and biases that matter
                for parameter in model.parameters():
                    if parameter.dim() == 1:
                        parameter.add_(0.1 * torch.randn_like(parameter))
            folder = lab.folder / name
            model.save_pretrained(folder)
            if not lab.knows(folder):
                print(f"{name}: not known here, left out")
                continue
            full_tuning(lab, name, folder)
            adapters(lab, name, folder)
            print(f"{name}: the same in transformers and PEFT")
        for name, (kind, config) in encoders().items():
            folder = lab.folder / name
            kind(config).save_pretrained(folder)
            if not lab.knows(folder):
                print(f"{name}: not known here, left out")
                continue
            classifier(lab, name, kind, folder)
            print(f"{name}: the same in transformers and PEFT")


if __name__ == "__main__":
    if os.environ.get("LOCKSTEP_PEERS_PYTHON") and sys.executable != os.environ["LOCKSTEP_PEERS_PYTHON"]:
        os.execv(os.environ["LOCKSTEP_PEERS_PYTHON"], [os.environ["LOCKSTEP_PEERS_PYTHON"], *sys.argv])
    main()
