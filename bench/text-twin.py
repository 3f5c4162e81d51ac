"""Does it learn what PyTorch learns? A byte-level gpt on 1 MB of English text, trained by `lockstep train` and by a twin
in PyTorch.

Both have the same model, initial weights (the twin reads them from a checkpoint before the first step), order of
records, optimizer, clipping and schedule. Which records a step reads is asked of `lockstep data at`, whose order is frozen
by golden vectors of its own; here it must only bring every record once an epoch. The twin cuts the text into records and
computes all else itself. So their losses agree to rounding in the first steps, which is checked, and drift apart only as
far as training amplifies rounding: at the end they may differ by 1 %. The text is what every Debian system carries, so
its hash is kept with the result.
"""

import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from harness import LOCKSTEP, OURS, PEERS_PYTHON, ROOT, Bench, Metric, RunFailed, run_json

TEXT_BYTES = 1_000_000
FINAL_STEPS = 20  # the final training loss is the mean over these
FIRST_STEPS = 10  # rounding has not grown yet
FIRST_TOLERANCE = 1e-4
TOLERANCE = 0.01

JOB = {
    "layers": 4,
    "dim": 128,
    "heads": 4,
    "vocab": 256,
    "seq": 128,
    "hold_out": 0.05,
    "data_seed": 7,
    "steps": 300,
    "global_batch": 32,
    "betas": [0.9, 0.95],
    "eps": 1e-8,
    "weight_decay": 0.1,
    "clip_norm": 1.0,
    "lr": 1e-3,
    "min_lr": 1e-4,
    "warmup": 0.05,
}

# The policy `rewind` writes a checkpoint before the first step, which is where the twin gets its weights from.
TEMPLATE = """\
name: text-twin
model: {{family: gpt, layers: {layers}, dim: {dim}, heads: {heads}, vocab: {vocab}, seq: {seq}}}
data: {{train: {{format: text, files: {text}}}, hold_out: {hold_out}, seed: {data_seed}}}
train:
  steps: {steps}
  global_batch: {global_batch}
  microbatch: 8
  optimizer: {{name: adamw, betas: {betas}, eps: {eps}, weight_decay: {weight_decay}}}
  lr: {{base: {lr}, warmup: {warmup:.0%}, decay: cosine, min: {min_lr}}}
  clip_norm: {clip_norm}
  guard: {{non_finite: rewind}}
checkpoint: {{every: {steps}}}
strategy: {{threads: {threads}}}
output: {output}
"""


def gather_text():
    """Licences first, then the packages' copyright files, in the order of their paths, each text once."""
    licences = sorted(p for p in pathlib.Path("/usr/share/common-licenses").glob("*") if p.is_file())
    files = [*licences, *sorted(pathlib.Path("/usr/share/doc").glob("*/copyright"))]
    text, seen = b"", set()
    for path in files:
        content = path.read_bytes()
        digest = hashlib.sha256(content).digest()
        if digest not in seen:
            seen.add(digest)
            text += content
        if len(text) >= TEXT_BYTES:
            return text[:TEXT_BYTES]
    raise RunFailed(f"this system carries {len(text)} bytes of licence texts; {TEXT_BYTES} are needed")


def lockstep(*arguments):
    """What the program printed."""
    done = subprocess.run([LOCKSTEP, *map(str, arguments)], capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        last = (done.stderr.strip() or "no output").splitlines()[-1]
        raise RunFailed(f"lockstep {arguments[0]}: exit code {done.returncode}: {last}")
    return done.stdout


def write_job(folder, name, job, threads, steps):
    path = folder / f"{name}.yaml"
    path.write_text(TEMPLATE.format(**{**job, "steps": steps}, threads=threads, output=folder / name))
    return path


def train(job_file):
    """Runs `lockstep train` from its start, and returns its folder."""
    lockstep("train", job_file, "--fresh")
    return job_file.with_suffix("")


def order_of(job_file, steps):
    """The records of every step, by their numbers, as `lockstep data at --step` lists them."""

    def records_of(step):
        header, *lines = lockstep("data", "at", job_file, "--step", step).splitlines()
        rows = [dict(zip(header.split("\t"), line.split("\t"))) for line in lines]
        return [(int(row["epoch"]), int(row["record"])) for row in rows]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        order = list(pool.map(records_of, range(1, steps + 1)))
    read = [sample for step in order for sample in step]
    if len(set(read)) != len(read):
        raise RunFailed("lockstep data at: a record comes twice in an epoch")
    return [[record for _, record in step] for step in order]


def ours(job_file):
    output = train(job_file)
    records = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    steps = [record for record in records if record["kind"] == "step"]
    summary = json.loads((output / "summary.json").read_text())
    return {
        "losses": [record["loss"] for record in steps],
        "eval_loss": summary["final_eval"]["loss"],
        "step_ms": 1e3 * statistics.median(record["seconds"] for record in steps),
    }


def verdict(bench, all_figures, job):
    """What must hold; the text of what does not, or nothing."""
    mine, theirs = (all_figures[name][-1] for name in (OURS, "torch eager"))
    first = max(abs(a - b) / b for a, b in list(zip(mine["losses"], theirs["losses"]))[:FIRST_STEPS])
    final = abs(final_loss(mine) / final_loss(theirs) - 1)
    held_out = abs(mine["eval_loss"] / theirs["eval_loss"] - 1)
    bench.facts["relative differences"] = {
        f"largest in the first {FIRST_STEPS} steps": first,
        "final training loss": final,
        "held-out loss": held_out,
    }
    print(f"\nrelative differences: first steps {first:.1e}, final training loss {final:.2%}, held out {held_out:.2%}")
    print_curves(mine, theirs, job["steps"])
    if first > FIRST_TOLERANCE:
        return f"the first losses differ by {first:.1e}: this is not the same model, data or schedule"
    if max(final, held_out) > TOLERANCE:
        return f"the losses differ by more than {TOLERANCE:.0%}"
    return None


def print_curves(mine, theirs, steps):
    print(f"\n{'step':>6}  {'ours':>8}  {'torch':>8}")
    for step in [1, *range(max(1, steps // 10), steps + 1, max(1, steps // 10))]:
        print(f"{step:>6}  {mine['losses'][step - 1]:>8.4f}  {theirs['losses'][step - 1]:>8.4f}")
    print()


def final_loss(figures):
    return statistics.mean(figures["losses"][-FINAL_STEPS:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, help="another length; the result is printed, not kept")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2, help="turns of each; the losses are the same in all")
    parser.add_argument("--quick", action="store_true", help="20 steps, one turn; printed, not kept")
    args = parser.parse_args()
    if args.quick:
        args.steps, args.repeats = args.steps or 20, 1

    bench = Bench("text-twin")
    with tempfile.TemporaryDirectory(prefix="text-twin.") as name:
        folder = pathlib.Path(name)
        text = gather_text()
        (folder / "text").write_bytes(text)
        job = {**JOB, "text": str(folder / "text"), "steps": args.steps or JOB["steps"]}
        job["weights"] = str(train(write_job(folder, "start", job, args.threads, 1)) / "checkpoint-0" / "model.safetensors")
        job_file = write_job(folder, "run", job, args.threads, job["steps"])
        job["order"] = order_of(job_file, job["steps"])
        (folder / "job.json").write_text(json.dumps(job))
        bench.facts["text"] = {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}

        kept = {OURS: [], "torch eager": []}

        def keep(runner, figures):
            kept[runner].append(figures)
            return figures

        script = ROOT / "bench" / "peers" / "torch_text.py"
        command = [PEERS_PYTHON, script, folder / "job.json", "--threads", args.threads]
        runners = {
            OURS: lambda: keep(OURS, ours(job_file)),
            "torch eager": lambda: keep(
                "torch eager", run_json(command, env={"OMP_NUM_THREADS": str(args.threads)})
            ),
        }
        metrics = [
            Metric("final training loss", "nats", "lower", final_loss),
            Metric("held-out loss", "nats", "lower", lambda f: f["eval_loss"]),
            Metric("step time", "ms", "lower", lambda f: f["step_ms"]),
        ]
        bench.measure(f"gpt {job['layers']}x{job['dim']} on 1 MB of English", runners, metrics, args.repeats)

    failure = verdict(bench, kept, job) if all(kept.values()) else "a side did not finish"
    code = bench.finish(keep=not args.steps)
    if failure:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if failure else code


if __name__ == "__main__":
    sys.exit(main())
