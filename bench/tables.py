"""Writes the figures of bench/results into the tables of README.md and of pages under docs, so that a document shows what a bench
measured last and nothing else. `./dev bench` runs it after every bench; `--check` changes nothing, and fails where a table is
not that of the results.

A table stands between two comments, `<!-- bench/tables.py NAME -->` and `<!-- end -->`; TABLES has a function for each NAME.
"""

import functools
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md", "docs/fine-tuning.md", "docs/input.md", "docs/performance.md", "docs/splitting.md")
BLOCK = re.compile(r"(<!-- bench/tables.py (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

PEERS = {
    "torch": "DataLoader",
    "tfdata": "tf.data",
    "datasets": "datasets",
    "polars": "polars",
    "grain": "Grain",
    "webdataset": "WebDataset",
}


# ---- figures of a result ---------------------------------------------------------------------------------------------


@functools.cache
def result(bench):
    return json.loads((ROOT / "bench" / "results" / f"{bench}.json").read_text())


class NotMeasured(Exception):
    pass


class Figure:
    """One metric of one case."""

    def __init__(self, bench, case, metric):
        found = [one for one in result(bench)["cases"] if (one["case"], one["metric"]) == (case, metric)]
        if not found:
            raise NotMeasured(f"bench/results/{bench}.json has no {metric} of {case}: run ./dev bench {bench}")
        self.one = found[0]
        self.ours, self.peers, self.ratio = self.one["ours"], self.one["peers"], self.one["ratio"]

    def best_peer(self):
        pick = min if self.one["better"] == "lower" else max
        return pick(self.peers, key=self.peers.get)

    def best(self):
        return self.peers[self.best_peer()]


def measured_on(bench):
    """The machine and the program, for the end of a table."""
    machine = result(bench)["machine"]
    commits = sorted({one.get("commit", machine["commit"]) for one in result(bench)["cases"]})
    cpu = re.sub(r"\((R|TM)\)", "", machine["cpu"])
    return f"{machine['cores']} cores of {cpu} ({machine['isa'].split()[0]}), commit {', '.join(commits)}"


# ---- words -----------------------------------------------------------------------------------------------------------


def ms(value):
    return f"{value:.0f} ms" if value >= 20 else f"{value:.1f} ms"


def rate(value):
    """Records per something: thousands where there are many."""
    return f"{value / 1e3:.0f} k" if value >= 1e4 else f"{value:.0f}"


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def table(header, rows):
    return "\n".join([row(*header), row(*["---"] * len(header)).replace(" ", ""), *rows])


# ---- tables ----------------------------------------------------------------------------------------------------------


def cpu_step():
    names = {
        "gpt 12x768 B4 T256": "GPT-2 124M, B=4 T=256",
        "bert-base B8 T128": "BERT-base, B=8 T=128",
        "gpt 6x256 B16 T256": "gpt 6 x 256, B=16 T=256",
        "gpt 4x64 B8 T64": "gpt 4 x 64, B=8 T=64",
        "tabular 26 tables B2048": "tabular, 26 tables of 100k x 32, B=2048",
        "resnet18 64x64 B16": "resnet18, 64x64, B=16",
    }
    rows = []
    for case, name in names.items():
        step, share, memory, own = (
            Figure("cpu-step", case, metric)
            for metric in ("step time", "share of GEMM floor", "peak memory", "peak memory without libraries")
        )
        rows.append(
            row(
                name,
                ms(step.ours),
                f"{ms(step.best())} ({step.best_peer().removeprefix('torch ')})",
                f"{step.ratio:.2f}",
                f"{share.ours:.2f}",
                f"{memory.ours / memory.best():.2f}",
                f"{own.ours / own.best():.2f}",
            )
        )
    header = ["model", "ours", "PyTorch", "times faster", "share of GEMM floor", "memory of PyTorch's", "without libraries"]
    return f"{table(header, rows)}\n\n{measured_on('cpu-step')}."


def input_peer(figure):
    program = figure.best_peer().partition(" ")[0]
    # What datasets streams comes in the order of the files.
    unmixed = program == "datasets" and not re.search("in order|kept", figure.one["case"])
    return f"{rate(figure.best())} ({PEERS[program]}{', unmixed' if unmixed else ''})"


def per_cpu_second(*titles):
    figures = [Figure("input", title, "records per CPU-second") for title in titles]
    return " / ".join(rate(one.ours) for one in figures), " / ".join(map(input_peer, figures))


def parts():
    twin = Figure("text-twin", "gpt 4x128 on 1 MB of English", "held-out loss")
    startup = Figure("startup", "gpt template", "start to first step")
    two = Figure("allreduce", "2 ranks 64 MiB", "bus bandwidth")
    sixteen = Figure("allreduce-16-cores", "16 ranks 64 MiB", "bus bandwidth")
    weak = [
        Figure("weak-scaling-16-cores", f"gpt 6x384 B{batch} T128, 16 workers", "samples per second") for batch in (1, 4)
    ]
    hosts = Figure("hosts", "4 hosts, 1 Gbit/s, mtu 1500, 64 MiB", "times the wire bound")
    tables = per_cpu_second("CSV, 40 columns", "JSONL, 40 members", "TFRecord, Examples of 0.9 kB")
    others = per_cpu_second("tokens, rows of 1024", "JPEGs in folders, 224 pixels")
    parquet = per_cpu_second("Parquet, 40 columns", "Parquet, 40 columns, in order", "Parquet, rows kept, mixed")
    rows = [
        row("gpt on 1 MB of text, 300 steps: held-out loss", f"{twin.ours:.5f}", f"{twin.best():.5f} (PyTorch twin)", "`text-twin`"),
        row("the small gpt, process start to first step done", f"{startup.ours:.2f} s", f"{startup.best():.1f} s (PyTorch)", "`startup`"),
        row(
            "all_reduce of 64 MiB over 2 ranks, bus bandwidth",
            f"{two.ours:.1f} GB/s",
            f"{two.peers['openmpi']:.1f} (OpenMPI), {two.peers['gloo']:.1f} (Gloo)",
            "`allreduce`",
        ),
        row(
            "16 workers on 16 cores, gpt 6x384, samples per second with 1 / 4 samples a worker",
            " / ".join(f"{one.ours:.0f}" for one in weak),
            " / ".join(f"{one.best():.0f}" for one in weak)
            + " (DDP with Gloo); [other machines](docs/communication.md#measuring): 1.5 to 1.7 times / 1.1 to 1.3",
            "`weak-scaling`",
        ),
        row(
            "all_reduce of 64 MiB over 16 ranks on 16 cores, bus bandwidth",
            f"{sixteen.ours:.1f} GB/s",
            f"{sixteen.peers['gloo']:.1f} (Gloo), {sixteen.peers['openmpi']:.1f} (OpenMPI)",
            "`allreduce`",
        ),
        row(
            "all_reduce of 64 MiB over 4 hosts, links of 1 Gbit/s, times the wire bound",
            f"{hosts.ours:.2f}",
            f"{hosts.best():.2f} (OpenMPI, its best)",
            "`hosts`",
        ),
        row("records per CPU-second to batches from CSV / JSONL / TFRecord, 40 columns", *tables, "`input`"),
        row("the same from tokens (rows of 1024) / JPEGs", *others, "`input`"),
        row(
            "the same from Parquet: mixed / in the order of the files / mixed, with `data.cache: rows`", *parquet, "`input`"
        ),
    ]
    return table(["whole runs and parts", "ours", "the best peer", "bench"], rows)


def input_formats():
    """Ours and the best peer's records per CPU-second; of the other metrics, the best of all peers."""
    titles = ["CSV, 40 columns", "JSONL, 40 members", "TFRecord, Examples of 0.9 kB", "tokens, rows of 1024"]
    titles += ["JPEGs in folders, 224 pixels", "Parquet, 40 columns", "Parquet, 40 columns, in order"]
    titles += ["Parquet, rows kept, mixed", "Parquet, rows kept, in order"]
    rows = []
    for title in titles:
        cost, speed, first, resume, memory = (
            Figure("input", title, metric)
            for metric in (
                "records per CPU-second",
                "records per second",
                "open to first batch",
                "resume in mid-epoch to first batch",
                "peak memory",
            )
        )
        cells = [title, rate(cost.ours), input_peer(cost), f"{cost.ratio:.2f}", f"{rate(speed.ours)}, {rate(speed.best())}"]
        cells += [f"{ms(one.ours)}, {ms(one.best())}" for one in (first, resume)]
        rows.append(row(*cells, f"{memory.ours:.0f} MiB, {memory.best():.0f} MiB"))
    header = ["format", "records per CPU-second", "best peer", "ratio", "records/s, ours and the most"]
    header += ["first batch, ours and the least", "resume", "peak memory, ours and the least"]
    return f"{table(header, rows)}\n\n{measured_on('input')}."


def gpu():
    names = {
        "gpt2 124M": "GPT-2 124M, 64 x 1024 tokens",
        "llama 1.1B": "LLaMA 1.1B, 8 x 2048",
        "llama 1.1B, bf16 state": "the same, all in bf16",
        "llama 7B": "LLaMA-2-7B shape, 4 x 2048",
        "llama 7B, bf16 state": "the same, all in bf16",
        "resnet50": "ResNet-50, 224 pixels, batch 256",
    }
    rows = []
    measured = {one["case"] for one in result("gpu")["cases"]}  # one by one: bench/gpu.py --case
    for case, name in names.items():
        if case not in measured:
            continue
        speed, memory, first = (
            Figure("gpu", case, metric) for metric in ("speed", "peak memory", "end of the first step")
        )
        rows.append(
            row(
                name,
                f"{speed.ours:,.0f} {speed.one['unit']}",
                f"{speed.best():,.0f}",
                f"{speed.ratio:.2f}",
                f"{speed.ours / speed.one['floor']:.0%}",
                f"{memory.ours:.1f}, {memory.best():.1f} GiB",
                f"{first.ours:.1f}, {first.best():.0f} s",
            )
        )
    header = ["model", "ours", "PyTorch", "times faster", "of the matrix rate", "memory, ours and PyTorch's"]
    versions = result("gpu")["machine"]["versions"]
    where = f"{versions['gpu']}, PyTorch {versions['torch']}, commit {result('gpu')['machine']['commit']}"
    kept = {}
    for case, name in names.items():
        for one in result("gpu")["cases"]:
            if one["case"] == case and "commit" in one:
                kept.setdefault(one["commit"], {})[name.split(",")[0]] = None
    kept.pop(result("gpu")["machine"]["commit"], None)
    where += "".join(f"; {', '.join(of)}: commit {commit}" for commit, of in kept.items())
    return f"{table([*header, 'end of the first step'], rows)}\n\n{where}."


def finetune():
    names = {
        "full, bf16 weights": "all of it, bf16 weights and moments",
        "LoRA, rank 16": "LoRA of rank 16 on every linear layer",
        "full, f32 weights": "all of it, f32 weights and moments",
        "job file, bf16 weights": "without a folder, bf16 weights and moments",
        "job file, f32 weights": "without a folder, f32 weights and moments",
    }
    rows = []
    for case, name in names.items():
        try:
            speed, memory, planned, first, export = (
                Figure("finetune-gpu", case, metric)
                for metric in ("speed", "peak memory", "planned memory", "end of the first step", "export to a folder")
            )
        except NotMeasured:
            continue
        peer = (f"{speed.best():,.0f} ({speed.best_peer().removeprefix('torch ')})", f"{speed.ratio:.2f}") if speed.peers else ("", "")
        theirs = [f", {one.best():.{digits}f}" if one.peers else "" for one, digits in ((memory, 1), (first, 0))]
        rows.append(
            row(
                name,
                f"{speed.ours:,.0f}",
                *peer,
                f"{memory.ours:.1f}{theirs[0]} GiB",
                f"{planned.ours:.1f} GiB",
                f"{first.ours:.1f}{theirs[1]} s",
                f"{export.ours:.0f} s" if export.ours else "",
            )
        )
    header = ["LLaMA-2-7B shape, 4 x 2048", "tokens/s", "transformers, PEFT", "times faster", "memory, ours and theirs"]
    header += ["`lockstep check` had said", "end of the first step", "export"]
    machine = result("finetune-gpu")["machine"]
    versions = machine["versions"]
    where = f"{versions['gpu']}, PyTorch {versions['torch']}"
    return f"{table(header, rows)}\n\n{where}, transformers {versions['transformers']}, commit {machine['commit']}."


def generate():
    rows = []
    for kind in ("fp32", "bf16"):
        for metric, name in (("prompt", "read a prompt of 512 tokens"), ("writing", "write 64 tokens after it")):
            one = Figure("generate", f"{kind}, 2 threads", metric)
            floor = f"{one.ours / one.one['floor']:.0%}" if one.one["floor"] else ""
            peer = one.best_peer().removeprefix("transformers, ")
            rows.append(
                row(f"{kind}: {name}", f"{one.ours:.1f}", f"{one.best():.1f} ({peer})", f"{one.ratio:.2f}", floor)
            )
    header = ["tokens per second", "ours", "transformers", "times faster", "of what memory allows"]
    return f"{table(header, rows)}\n\nA llama of 246 million parameters; {measured_on('generate')}."


def split():
    """Of every case that was measured: samples per second, and bytes beside their formula."""
    rows = []
    for case in dict.fromkeys(one["case"] for one in result("split")["cases"] if one["metric"] == "sent in a step"):
        speed, sent = (Figure("split", case, metric) for metric in ("samples per second", "sent in a step"))
        peer, ratio = (f"{speed.best():.1f} ({speed.best_peer()})", f"{speed.ratio:.2f}") if speed.peers else ("", "")
        theirs = f"{sent.best():.1f}" if sent.peers else ""
        cells = [case, f"{speed.ours:.1f}", peer, ratio, f"{sent.ours:.1f}", f"{sent.one['floor']:.1f}", theirs]
        rows.append(row(*cells))
    header = ["llama 8 x 256, T=128", "samples/s", "PyTorch", "times faster", "MB sent in a step", "formula", "PyTorch sends"]
    return f"{table(header, rows)}\n\n{measured_on('split')}."


TABLES = {
    "split": split,
    "generate": generate,
    "cpu-step": cpu_step,
    "parts": parts,
    "input": input_formats,
    "gpu": gpu,
    "finetune": finetune,
}


def main():
    check = sys.argv[1:] == ["--check"]
    stale = []

    def renewed(block):
        try:
            return f"{block[1]}{TABLES[block['name']]()}\n{block[3]}"
        except NotMeasured as reason:
            stale.append(f"table {block['name']} stays as it is: {reason}")
            return block[0]

    for name in DOCUMENTS:
        path = ROOT / name
        old = path.read_text()
        new = BLOCK.sub(renewed, old)
        if new == old:
            continue
        stale.append(f"{name}: tables {'are not those of' if check else 'renewed from'} bench/results")
        if not check:
            path.write_text(new)
    print("\n".join(stale), end="\n" if stale else "")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
