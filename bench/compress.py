"""Compressed gradients: steps between hosts on slow links, beside PyTorch's DDP with its compression hooks on Gloo.

The hosts are network namespaces of this machine whose links are shaped to a rate (tests/hosts/hosts). A gpt is trained on
two of them with each codec. What rounds (int8) stands beside DDP as it is and with its fp16 hook; what leaves most of the
gradients out (powersgd of rank 4, topk of 1 %) beside its PowerSGD hook of rank 4. These two are measured as they are once their exact
sums at the beginning of a run (strategy.reduce.warmup) are over, and so is the hook. `auto` stands beside the same job with a codec by hand: a ratio of
0.9 is within 10 % of the best of them. On shared memory it should choose none.

The loss case trains two jobs to the end with each codec and compares the loss on held-out records with that of exact
sums: a gpt on the text of the documents, and the table of examples/fraud.yaml.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from harness import LOCKSTEP, OURS, PEERS_PYTHON, ROOT, Bench, Metric, RunFailed, debian_version, run_json
from probes.box import PORT, Links, workers
from probes.train_job import WARM_UP, step_figures, train_job

MODEL = {"layers": 6, "dim": 256, "heads": 4, "vocab": 256, "seq": 128}
BATCH = 4
HOSTS = 2
STEP = [Metric("time of a step", "ms", "lower", lambda f: f["step_ms"])]


def job(steps):
    return {
        "name": "compress",
        "model": {"family": "gpt", **MODEL, "dropout": 0.0},
        "train": {
            "steps": WARM_UP + steps,
            "global_batch": HOSTS * BATCH,
            "microbatch": BATCH,
            "optimizer": {"name": "adamw", "betas": [0.9, 0.95], "weight_decay": 0.1},
            "lr": {"base": 1e-3},
            "precision": "fp32",
            "clip_norm": 1.0,
        },
        "strategy": {"threads": 1, "leaves": HOSTS},
    }


class OnHosts:
    def __init__(self, links, args):
        self.links, self.args = links, args
        self.chosen = []

    def ours(self, codec):
        def run():
            nodes = ["--nnodes", HOSTS, "--node-rank", "{host}", "--nproc-per-node", 1, "--master-addr", "{master}"]
            nodes += ["--master-port", PORT]
            token = ["env", "LOCKSTEP_TOKEN=0123456789abcdef0123456789abcdef"]
            settings = [f"strategy.reduce.compress={codec}"]
            if codec in ("topk", "powersgd"):
                settings.append("strategy.reduce.warmup=0")
            steps, summary = train_job(job(self.args.steps), settings, [*self.links.box(HOSTS), *token], nodes)
            if codec == "auto":
                self.chosen.append(summary["compression"]["reason"] + " -> " + summary["compression"]["codec"])
            return step_figures(steps)

        return run

    def ddp(self, hook):
        def run():
            command = [*self.links.box(HOSTS), *workers(HOSTS), "OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=eth0", PEERS_PYTHON]
            command += [ROOT / "bench" / "peers" / "torch_ddp.py", "--hook", hook, "--workers", HOSTS, "--batch", BATCH]
            command += ["--steps", self.args.steps, "--warmup", WARM_UP]
            return run_json([*command, *(part for name, value in MODEL.items() for part in (f"--{name}", value))])

        return run


def measure_links(bench, rate, args):
    hosts = OnHosts(Links(rate * 1e6), args)
    title = f"gpt 6x256 B{BATCH} on {HOSTS} hosts, {rate:g} Mbit/s"
    rounded = {OURS: hosts.ours("int8"), "ddp": hosts.ddp("none"), "ddp fp16": hosts.ddp("fp16")}
    bench.measure(f"{title}, int8", rounded, STEP, args.repeats)
    for codec, name in {"powersgd": "powersgd 4", "topk": "topk 1 %"}.items():
        few = {OURS: hosts.ours(codec), "ddp powersgd": hosts.ddp("powersgd")}
        bench.measure(f"{title}, {name}", few, STEP, args.repeats)
    by_hand = {f"{codec} by hand": hosts.ours(codec) for codec in ("none", "bf16", "int8")}
    bench.measure(f"{title}, auto", {OURS: hosts.ours("auto"), **by_hand}, STEP, args.repeats)
    bench.facts.setdefault("auto", {})[title] = hosts.chosen


def measure_shared_memory(bench, args):
    chosen = []

    def ours(codec):
        def run():
            settings = [f"strategy.workers={HOSTS}", f"strategy.reduce.compress={codec}"]
            steps, summary = train_job(job(args.steps), settings)
            if codec == "auto":
                chosen.append(summary["compression"]["reason"] + " -> " + summary["compression"]["codec"])
            return step_figures(steps)

        return run

    title = f"gpt 6x256 B{BATCH}, {HOSTS} workers on one host"
    by_hand = {f"{codec} by hand": ours(codec) for codec in ("none", "int8")}
    bench.measure(f"{title}, auto", {OURS: ours("auto"), **by_hand}, STEP, args.repeats)
    bench.facts.setdefault("auto", {})[title] = chosen


# ---- loss ------------------------------------------------------------------------------------------------------------


def held_out_loss(folder, file, codec):
    command = [LOCKSTEP, "train", file, "--set", f"output={folder}/{codec}"]
    for setting in (f"strategy.reduce.compress={codec}", "strategy.leaves=4"):
        command += ["--set", setting]
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RunFailed(f"lockstep train ({codec}): {(done.stderr.strip() or 'no output').splitlines()[-1]}")
    return json.loads((folder / codec / "summary.json").read_text())["final_eval"]["loss"]


def gpt_on_documents(folder, args):
    text = "\n".join(path.read_text() for path in sorted((ROOT / "docs").glob("**/*.md")))
    (folder / "train").write_text(text[: len(text) * 9 // 10])
    (folder / "eval").write_text(text[len(text) * 9 // 10 :])
    files = {use: {"format": "text", "files": str(folder / use)} for use in ("train", "eval")}
    job = {
        "name": "documents",
        "model": {"family": "gpt", "layers": 4, "dim": 128, "heads": 4, "vocab": 256, "seq": 64, "dropout": 0.0},
        "data": {**files, "seed": 3},
        "train": {
            "steps": args.loss_steps,
            "global_batch": 16,
            "microbatch": 4,
            "optimizer": {"name": "adamw"},
            "lr": {"base": 1e-3, "warmup": 100, "decay": "cosine"},
            "clip_norm": 1.0,
        },
    }
    (folder / "gpt.yaml").write_text(json.dumps(job))
    return folder / "gpt.yaml"


def fraud(folder, args):
    made = [LOCKSTEP, "data", "synth", "fraud", "--rows", 240000, "--out", folder / "tx"]
    subprocess.run([str(part) for part in made], check=True, capture_output=True)
    job = (ROOT / "examples" / "fraud.yaml").read_text()
    (folder / "fraud.yaml").write_text(job.replace("epochs: 3", f"steps: {args.loss_steps}"))
    return folder / "fraud.yaml"


def measure_loss(bench, args):
    for name, make in {"gpt 4x128 on the documents": gpt_on_documents, "fraud": fraud}.items():
        with tempfile.TemporaryDirectory(prefix="compress.") as folder:
            folder = pathlib.Path(folder)
            file = make(folder, args)
            losses = {}
            for codec in ("none", *args.codecs):
                print(f"  {name}: {codec}", file=sys.stderr, flush=True)
                try:
                    losses[codec] = held_out_loss(folder, file, codec)
                except RunFailed as reason:
                    bench.note_failure(name, OURS, reason)
            exact = losses.get("none")
            facts = {c: {"loss": v, "to_exact": v / exact - 1} for c, v in losses.items()}
            bench.facts.setdefault("held_out_loss", {})[f"{name}, {args.loss_steps} steps"] = facts
            for codec, fact in facts.items():
                print(f"{name}: {codec} {fact['loss']:.5g} ({100 * fact['to_exact']:+.2f} %)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=float, nargs="*", default=[100, 1000], help="of the links, Mbit/s")
    parser.add_argument("--steps", type=int, default=8, help="that are timed in a turn")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each runner")
    parser.add_argument("--loss-steps", type=int, default=2000)
    parser.add_argument("--codecs", nargs="*", default=["bf16", "int8", "topk", "powersgd"], help="of the loss case")
    parser.add_argument("--only", choices=["steps", "loss"])
    args = parser.parse_args()
    bench = Bench("compress" if args.only != "loss" else "compress-loss")
    bench.versions |= {"ucx": debian_version("libucx0")}
    if args.only != "loss":
        for rate in args.rates:
            measure_links(bench, rate, args)
        measure_shared_memory(bench, args)
    if args.only != "steps":
        measure_loss(bench, args)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
