"""A Hugging Face folder of LLaMA-2-7B's shape tuned on one GPU: from the folder to a folder, beside transformers and PEFT.

The folder is made on the spot, with random weights in bf16, and the corpus of random tokens; `lockstep train` tunes it for some
steps, all of it or by LoRA on every linear layer, and `lockstep export` writes folders that transformers opens (PEFT, for adapters)
and finds the loss in that ours found. The peers take the same batches with the same precision, eager and compiled; what is compared
is the median step. `lockstep check` must have said what the device's memory will be, within 3 %. The plan with f32 weights and
models of our own family, trained from a job file alone, have no peer.

`LOCKSTEP_PROGRAM` names a program that was built with the CUDA backend (build/cuda/lockstep unless it is set). The folder goes to
memory (/dev/shm) where there is room, or to --scratch.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from harness import OURS, PEERS_PYTHON, ROOT, Bench, Metric, RunFailed, WrongResult, run_json

PROGRAM = pathlib.Path(os.environ.get("LOCKSTEP_PROGRAM") or ROOT / "build" / "cuda" / "lockstep")
PEERS = ROOT / "bench" / "peers"
GIB = 2**30
HELD_OUT_ROWS = 4
PLANNED_TOLERANCE = 0.03
LOSS_TOLERANCE = 0.01  # of a model read back in bf16

# name: (the job's model, its training section, its peer's options or none, the exports: what and their options)
HF = "{{hf: {folder}, seq: {seq}}}"
FAMILY = "{{family: llama, layers: {layers}, dim: 4096, heads: 32, kv_heads: 32, hidden: 11008, vocab: 32000, tied: false, seq: {seq}}}"
PURE = "precision: bf16_pure\n  moments: bf16\n  recompute: {recompute}"
WIDE = "precision: bf16\n  recompute: cheap"
LORA = "precision: bf16\n  lora: {{rank: 16, alpha: 32, modules: [all-linear]}}"
CASES = {
    "full, bf16 weights": (HF, PURE, [], [("hf", [])]),
    "LoRA, rank 16": (HF, LORA, ["--lora", "16"], [("peft", []), ("hf", ["--merge"])]),
    "full, f32 weights": (HF, WIDE, None, []),
    "job file, bf16 weights": (FAMILY, PURE, None, []),
    "job file, f32 weights": (FAMILY, WIDE, None, []),
}

JOB = """\
name: finetune
model: {model}
data: {{train: {{format: tokens, files: {data}}}, eval: {{format: tokens, files: {held_out}}}, shuffle: none}}
train:
  steps: {steps}
  global_batch: {batch}
  microbatch: {batch}
  optimizer: {{name: adamw, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0}}
  lr: {{base: 1e-5}}
  clip_norm: 1.0
  {train}
checkpoint: {{final: {final}}}
device: {device}
output: {output}
"""


def write_tokens(path, count, seed, vocab=32000):
    """Random ones, as a file of `lockstep tokenize`."""
    import random

    draw = random.Random(seed)
    body = struct.pack(f"<{count}H", *(draw.randrange(vocab) for _ in range(count)))
    header = b"LOCKTOK\n" + struct.pack("<IIQQ", 1, 2, count, 1)
    path.write_bytes(header.ljust(64, b"\0") + body + bytes(-len(body) % 8) + struct.pack("<Q", count))


def scratch_folder(named):
    if named:
        return named
    memory = pathlib.Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > 48e9 else tempfile.gettempdir()


class Lab:
    def __init__(self, args, folder):
        self.args, self.folder = args, pathlib.Path(folder)
        self.model, self.data, self.held_out = self.folder / "model", self.folder / "train.bin", self.folder / "eval.bin"
        write_tokens(self.data, (args.steps * args.batch + 1) * args.seq + 1, 1)
        write_tokens(self.held_out, HELD_OUT_ROWS * args.seq + 1, 2)

    def lockstep(self, *arguments):
        """What it printed, and the seconds that took."""
        start = time.time()
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=ROOT)
        if done.returncode != 0:
            lines = (done.stderr.strip() or "no output").splitlines()
            raise RunFailed(f"lockstep {arguments[0]}: exit code {done.returncode}: {' / '.join(lines[-3:])}")
        return done.stdout, time.time() - start

    def make_folder(self):
        start = time.time()
        layers = ["--layers", self.args.layers] if self.args.layers else []
        run_json([PEERS_PYTHON, PEERS / "random_llama.py", self.model, "bfloat16", "--size", "7b", *layers])
        self.note("folder", start)

    def note(self, what, start):
        print(f"  {what}: {time.time() - start:.1f} s", file=sys.stderr, flush=True)

    def job(self, name):
        model, train, _, exports = CASES[name]
        values = dict(
            folder=self.model, seq=self.args.seq, layers=self.args.layers or 32, recompute=self.args.recompute
        )
        path, output = self.folder / "job.yaml", self.folder / "run"
        path.write_text(
            JOB.format(
                model=model.format(**values),
                data=self.data,
                held_out=self.held_out,
                steps=self.args.steps,
                batch=self.args.batch,
                train=train.format(**values),
                final="weights" if exports else "none",
                device=self.args.device,
                output=output,
            )
        )
        return path, output

    def ours(self, name):
        exports = CASES[name][3]
        job, run = self.job(name)
        shutil.rmtree(run, ignore_errors=True)
        checked, check_seconds = self.lockstep("check", job)
        planned = float(re.search(r"planned peak +([0-9.]+)", checked)[1]) * 2**20
        _, train_seconds = self.lockstep("train", job)
        summary = json.loads((run / "summary.json").read_text())
        taken = summary.get("device_memory_bytes") or summary["peak_memory_bytes"]
        records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        figures = {
            "tokens_per_second": self.args.batch * self.args.seq / summary["step_time_ms"]["p50"] * 1e3,
            "first_step_s": summary["time_to_first_step_s"],
            "device_peak_bytes": taken,
            "planned": planned,
            "losses": [record["loss"] for record in records if record["kind"] == "step"],
            "check_s": check_seconds,
            "train_s": train_seconds,
        }
        if self.args.device == "cuda" and abs(planned / taken - 1) > PLANNED_TOLERANCE:
            raise WrongResult(f"{name}: lockstep check said {planned / GIB:.2f} GiB, and {taken / GIB:.2f} were taken")
        print(f"  {name}: check {check_seconds:.1f} s, train {train_seconds:.1f} s, planned {planned / GIB:.2f} GiB, taken "
              f"{taken / GIB:.2f}", file=sys.stderr, flush=True)
        for to, options in exports:
            out = self.folder / f"exported-{to}"
            _, seconds = self.lockstep("export", run, "--to", to, *options, "--out", out)
            figures[f"export_{to}_s"] = seconds
            self.note(f"export --to {to}", time.time() - seconds)
            self.compare(name, to, out, summary["final_eval"]["loss"])
            shutil.rmtree(out)
        shutil.rmtree(run)
        return figures

    def compare(self, name, to, out, expected):
        where = ["--model", self.model, "--adapter", out] if to == "peft" else ["--model", out]
        start = time.time()
        opened = run_json(
            [PEERS_PYTHON, PEERS / "torch_finetune.py", "open", *where, "--data", self.held_out, "--batch", HELD_OUT_ROWS,
             "--seq", self.args.seq]
        )
        self.note(f"opened by transformers, loss {opened['loss']:.5f}, ours {expected:.5f}", start)
        if abs(opened["loss"] / expected - 1) > LOSS_TOLERANCE:
            raise WrongResult(f"{name}: transformers finds loss {opened['loss']} in what --to {to} wrote, ours was {expected}")

    def torch(self, name, mode):
        command = [PEERS_PYTHON, PEERS / "torch_finetune.py", "train", "--model", self.model, "--data", self.data]
        command += ["--mode", mode, "--batch", self.args.batch, "--seq", self.args.seq]
        command += ["--steps", min(self.args.steps, 12), *CASES[name][2]]
        try:
            return run_json(command)
        except RunFailed as reason:
            if "out of memory" not in str(reason).lower():
                raise
            return run_json([*command, "--recompute"])

    def runners(self, name):
        peers = self.args.modes if CASES[name][2] is not None else []
        return {OURS: lambda: self.ours(name), **{f"torch {mode}": lambda mode=mode: self.torch(name, mode) for mode in peers}}


METRICS = [
    Metric("speed", "tokens/s", "higher", lambda f: f["tokens_per_second"]),
    Metric("end of the first step", "s", "lower", lambda f: f["first_step_s"]),
    Metric("peak memory", "GiB", "lower", lambda f: f["device_peak_bytes"] / GIB),
    Metric("planned memory", "GiB", "lower", lambda f: f["planned"] / GIB if "planned" in f else None),
    Metric("loss of step 6", "", "lower", lambda f: f["losses"][5]),
    Metric("lockstep check", "s", "lower", lambda f: f.get("check_s")),
    Metric("the whole run", "s", "lower", lambda f: f.get("train_s")),
    Metric("export to a folder", "s", "lower", lambda f: f.get("export_hf_s")),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", help="only those whose name contains this; others keep their figures")
    parser.add_argument("--modes", nargs="*", choices=["eager", "compile"], default=["eager", "compile"], help="of PyTorch")
    parser.add_argument("--layers", type=int, help="fewer than 32: tries everything out, and keeps no figures")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=2048)
    parser.add_argument("--recompute", choices=["none", "cheap", "block"], default="none", help="of ours with bf16 weights")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--scratch", help="a folder with 60 GB of room")
    args = parser.parse_args()
    names = [name for name in CASES if not args.case or any(part in name for part in args.case)]
    bench = Bench("finetune-gpu")
    about = "{'transformers': transformers.__version__, 'gpu': torch.cuda.get_device_name() if torch.cuda.is_available() else ''}"
    bench.versions |= run_json([PEERS_PYTHON, "-c", f"import json, torch, transformers; print(json.dumps({about}))"])
    with tempfile.TemporaryDirectory(dir=scratch_folder(args.scratch)) as folder:
        lab = Lab(args, folder)
        if any(CASES[name][0] is HF for name in names):
            lab.make_folder()
        for name in names:
            bench.measure(name, lab.runners(name), METRICS, repeats=1)
    if args.layers or args.device == "cpu":
        return bench.finish(keep=False)
    bench.take_others(names)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
