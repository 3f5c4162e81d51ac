"""How fast records become batches: Lockstep's input pipeline beside tf.data, PyTorch's DataLoader, Grain, WebDataset,
Hugging Face datasets and polars, on the same files, read again from the files in every epoch; and beside datasets' cache
on disk, where both read what they made of the files once.

The data is written once by bench/peers/input_data.py into build/bench-input and lies in the page cache. Everybody
gives batches of the same size with the same tensors: for tables 39 normalised f32 values and a label. Before anything
is compared, everybody reads one epoch whose sums must be those of the data, whatever the order; one of the sums ties the
labels to their records. Whoever can go on in the middle of an epoch must find the same batch there. In turns, each opens
the data in an already started process (first batch), reads for some seconds to warm up, in which loaders tune themselves
and come to the memory that they use, and is timed while it goes on reading. Peers that are far from the best in their
first turn have that turn only.

Loaders with processes of their own run with two where that is the better in any figure; elsewhere inside one process, which
costs them no copies. `--all` runs both everywhere. Processor time is that of all processes and their children; memory is
the sum of their proportional shares (PSS), at most, with libraries. Resuming starts from a state saved in the middle of
an epoch, up to the first batch.

In the cases with kept rows ours runs with data.cache: rows, and datasets from its Arrow cache of the same encoded
records. Everybody makes its cache in an empty folder first, on two processors, and the time of that is a figure of its
own. One case is in a mixed order, the other in the order of the files; only within one of them is anything compared.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from harness import LOCKSTEP, OURS, PEERS_PYTHON, ROOT, Bench, Metric, RunFailed, WrongResult

DATA = ROOT / "build" / "bench-input"
PEERS = ROOT / "bench" / "peers"
SAMPLE_S = 0.1
CONTENDER = 0.7  # a peer with less than this of the best one's records per CPU-second and per second has one turn

TABLE = {
    "model": {"family": "tabular", "dim": 8, "rows": 1000, "bottom": [8], "top": [8]},
    "train": {"steps": 1, "optimizer": {"name": "adamw"}, "lr": {"base": 1e-3}},
}


def table_job(memory):
    return {**TABLE, "data": {"memory": memory}}


# Grain reads Parquet and TFRecord by rows of Python objects, at a tenth of the best peer's speed and less: it is left out of
# the first, where an epoch takes minutes, and takes part in the other with --all.
# Memory for ours: too little to keep the data set, so that every epoch reads the files; enough for the blocks that the
# order has open.
CASES = {
    "csv": {
        "title": "CSV, 40 columns",
        "records": 1 << 19,
        "batch": 1024,
        "job": table_job(96 << 20),
        "peers": ["tfdata", "torch 0", "datasets 0", "polars 1", "polars 2"],
        "also": ["torch 2", "datasets 2"],
    },
    "jsonl": {
        "title": "JSONL, 40 members",
        "records": 1 << 18,
        "batch": 1024,
        "job": table_job(48 << 20),
        "peers": ["torch 2", "torch 0", "datasets 0", "grain 0", "polars 1", "polars 2"],
        "also": ["datasets 2", "grain 2"],
    },
    "tfrecord": {
        "title": "TFRecord, Examples of 0.9 kB",
        "records": 1 << 18,
        "batch": 1024,
        "job": table_job(48 << 20),
        "peers": ["tfdata"],
        "also": ["grain 2", "grain 0"],
    },
    "parquet": {
        "title": "Parquet, 40 columns",
        "records": 1 << 21,
        "batch": 1024,
        "job": table_job(448 << 20),
        "peers": ["torch 0", "datasets 0"],
        "also": ["torch 2", "datasets 2"],
    },
    "parquet_unmixed": {
        "title": "Parquet, 40 columns, in order",
        "data": "parquet",
        "records": 1 << 21,
        "batch": 1024,
        "job": {**TABLE, "data": {"memory": 384 << 20, "shuffle": "none"}},
        "peers": ["datasets 0"],
        "also": ["datasets 2"],
    },
    "parquet_mixed": {
        "title": "Parquet, rows kept, mixed",
        "data": "parquet",
        "kept": True,
        "records": 1 << 21,
        "batch": 1024,
        "job": table_job(384 << 20),
        "peers": ["datasets 0"],
        "also": ["datasets 2"],
    },
    "parquet_ordered": {
        "title": "Parquet, rows kept, in order",
        "data": "parquet",
        "kept": True,
        "records": 1 << 21,
        "batch": 1024,
        "job": {**TABLE, "data": {"memory": 384 << 20, "shuffle": "none"}},
        "peers": ["datasets 0"],
        "also": ["datasets 2"],
    },
    "tokens": {
        "title": "tokens, rows of 1024",
        "records": 1 << 17,
        "batch": 64,
        "job": {
            "model": {"family": "gpt", "layers": 1, "dim": 8, "heads": 1, "vocab": 50257, "seq": 1024},
            "train": {"steps": 1, "optimizer": {"name": "adamw"}, "lr": {"base": 1e-3}},
            "data": {"memory": 128 << 20},
        },
        "peers": ["tfdata", "torch 0", "grain 0"],
        "also": ["torch 2", "grain 2"],
    },
    "jpeg": {
        "title": "JPEGs in folders, 224 pixels",
        "records": 1 << 11,
        "batch": 64,
        "job": {
            "model": {"family": "resnet", "depth": 18, "width": 8, "image": 224, "classes": 8},
            "train": {"steps": 1, "optimizer": {"name": "sgd"}, "lr": {"base": 0.1}},
            "data": {"memory": 1 << 30, "images": {"crop": "center", "flip": False}},
        },
        "peers": ["tfdata", "torch 2", "torch 0", "webdataset 2", "webdataset 0", "grain 2"],
        "also": ["grain 0"],
    },
}


# ---- running one -----------------------------------------------------------------------------------------------------


QUICK = 16  # times less data, to try the bench


class PeakMemory:
    """Watches the memory of a process and all below it, each page counted once."""

    def __init__(self, process):
        self.root, self.most = process.pid, 0
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()

    def _watch(self):
        while not self.done.wait(SAMPLE_S):
            self.most = max(self.most, sum(map(self._share, self._tree(self.root))))

    def _tree(self, process):
        yield process
        for children in pathlib.Path(f"/proc/{process}/task").glob("*/children"):
            try:
                below = children.read_text().split()
            except OSError:
                continue
            for child in below:
                yield from self._tree(int(child))

    def _share(self, process):
        try:
            text = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            return 0
        return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:")), 0)

    def end(self):
        self.done.set()
        self.thread.join()
        return self.most


def run_watched(command, timeout=300):
    """The JSON object that a command prints last, and the most memory it had."""
    command = [str(part) for part in command]
    shown = " ".join([pathlib.Path(command[0]).name, *command[1:]]).replace(f"{ROOT}/", "")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    memory = PeakMemory(process)
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise RunFailed(f"{shown}: still running after {timeout} s")
    finally:
        peak = memory.end()
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if process.returncode != 0 or not lines:
        last = (errors.strip() or "no output").splitlines()[-1]
        raise RunFailed(f"{shown}: exit code {process.returncode}: {last}")
    return {**json.loads(lines[-1]), "memory": peak}


class Case:
    def __init__(self, name, args, folder):
        self.name, self.args = name, args
        self.what = CASES[name]
        self.records = self.what["records"]
        self.format = self.what.get("data", name)
        self.data = DATA / self.format
        if args.quick:
            self.records //= QUICK
            self.data = DATA / f"quick-{self.format}"
        self.peers = self.what["peers"] + (self.what.get("also", []) if args.all else [])
        if args.only is not None:
            self.peers = args.only
        self.folder = pathlib.Path(folder)
        self.job = pathlib.Path(folder) / f"{name}.yaml"
        self.versions = {}
        self.taken = {}  # figures of turns that are still to be counted
        self.built = {}  # seconds that making the cache took

    def prepare(self):
        """Writes the data and the job, and lets ours build its index."""
        command = [PEERS_PYTHON, PEERS / "input_data.py", self.format, self.data, self.records]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{self.name}: {done.stderr.strip().splitlines()[-1]}")
        self.truth = json.loads((self.data / "truth.json").read_text())
        job = json.loads(json.dumps(self.what["job"]))  # JSON is YAML
        job["name"] = f"input-{self.name}"
        job["train"] |= {"global_batch": self.what["batch"], "microbatch": self.what["batch"]}
        job["data"]["train"] = self.source()
        self.job.write_text(json.dumps(job))
        self.index()
        if self.what.get("kept"):
            job["data"] |= {"cache": "rows", "cache_folder": str(self.cache(OURS))}
            self.job.write_text(json.dumps(job))

    def warm(self):
        """Into the system's cache, from which idle files may have gone since somebody last read them."""
        for path in filter(pathlib.Path.is_file, self.data.rglob("*")):
            path.read_bytes()

    def index(self):
        start = time.perf_counter()
        done = subprocess.run([LOCKSTEP, "data", "index", self.job], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{self.name}: {done.stderr.strip()}")
        return time.perf_counter() - start

    def cache(self, runner):
        return self.folder / f"{self.name}-{runner.partition(' ')[0]}"

    def build(self, runner):
        """Makes what the runner keeps of the files; all runs of a program share it."""
        program = runner.partition(" ")[0]
        if program in self.built:
            self.built[runner] = self.built[program]
        elif runner == OURS:
            self.built[runner] = self.index()
        else:
            self.built[runner] = self.built[program] = run_watched([*self.command(runner), "--build"])["build_s"]

    def cache_bytes(self):
        programs = {runner.partition(" ")[0] for runner in self.built}
        sizes = {program: [f.stat().st_size for f in self.cache(program).rglob("*")] for program in programs}
        return {program: sum(of_files) for program, of_files in sizes.items()}

    def source(self):
        if self.name == "jpeg":
            return {"format": "images", "files": str(self.data / "images")}
        files = {"format": self.format, "files": f"{self.data}/part-*"}
        if self.name == "tokens":
            return files
        # By name, in the order that the peers have them in: features of an Example lie in any.
        return {**files, "label": "label", "columns": {"numeric": self.truth["names"]}}

    def command(self, runner):
        if runner == OURS:
            return [LOCKSTEP, "data", "bench", self.job, "--json"]
        program, _, workers = runner.partition(" ")
        script = PEERS / f"input_{program}.py"
        kept = ["--cache", self.cache(runner)] if self.what.get("kept") else []
        batch = ["--batch", self.what["batch"]]
        return [PEERS_PYTHON, script, self.name, self.data, *batch, "--workers", workers or 0, *kept]

    def run(self, runner, *more):
        seconds = ["--warm-up", self.args.warm_up, "--seconds", self.args.seconds]
        return run_watched([*self.command(runner), *seconds, *more])

    def measure(self, runner):
        """One turn; the first was taken before the check, in the same process."""
        figures = self.taken.pop(runner, None) or self.run(runner)
        self.versions |= figures.get("versions", {})
        if runner == OURS:
            self.require_reading(figures["window"])
        return figures

    def require_reading(self, window):
        """Ours keeps what fits into its memory; then it would not read files at all. (Of little data everything fits.)"""
        if self.args.quick:
            return
        wanted = window["records"] / self.records * self.truth["bytes_of_an_epoch"]
        if window["bytes"] < 0.9 * wanted:
            raise RunFailed(f"read {window['bytes']:.3g} bytes of files for records of {wanted:.3g}")

    def check(self, runner):
        """Reads an epoch and resumes in its middle; what differs from the data is a failure."""
        figures = self.run(runner, "--check")
        self.taken[runner] = figures
        gate = figures["gate"]
        if gate["records"] != self.records:
            raise WrongResult(f"{gate['records']} records in an epoch of {self.records}")
        for name, allowed in self.truth["columns"].items():
            found = gate["columns"][name]
            if not any(self.agree(found, sums) for sums in allowed):
                raise WrongResult(f"the sums over column {name} are {found}, should be one of {allowed}")
        self.require_tie(gate)
        resume = figures["resume"]
        if resume and not resume["same"]:
            raise WrongResult("resumed in the middle of an epoch, it gave another batch")
        return resume

    def agree(self, found, truth):
        if abs(found["squares"] - truth["squares"]) > self.truth["tolerance"] * truth["squares"]:
            return False
        return abs(found["sum"] - truth["sum"]) <= self.error_of_sum(truth)

    def error_of_sum(self, truth):
        # The weights of a record's values are 1 to its width.
        return self.truth["tolerance"] * truth["squares"] * (1 + truth["width"]) / 2

    def require_tie(self, gate):
        """Labels (the second column) belong to their records: input_data.py says how that is seen."""
        tie = self.truth["tie"]
        found = gate["tie"] - tie["mean"] * gate["columns"][tie["first"]]["sum"]
        allowed = tie["spread"] * max(map(self.error_of_sum, self.truth["columns"][tie["first"]]))
        if not any(abs(found - value) <= allowed for value in tie["values"]):
            raise WrongResult(
                f"labels are not with their records: what ties them adds up to {found}, should be one of {tie['values']}"
            )


# ---- comparing -------------------------------------------------------------------------------------------------------


def metrics(case, resumes):
    each = case.truth["bytes"] / case.records

    def rate(figures):
        return figures["window"]["records"] / figures["window"]["seconds"]

    def cost(figures):
        return figures["window"]["cpu_s"] / figures["window"]["records"]

    def of_resume(key):
        return lambda figures: resumes.get(figures["runner"], {}).get(key)

    kept = Metric("records a second, while the cache is made", "1/s", "higher", lambda f: case.records / f["build_s"])
    return ([kept] if case.what.get("kept") else []) + [
        Metric("records per CPU-second", "1/s", "higher", lambda f: 1 / cost(f)),
        Metric("CPU-seconds per million records", "s", "lower", lambda f: 1e6 * cost(f)),
        Metric("records per second", "1/s", "higher", rate),
        Metric("source bytes per second", "MB/s", "higher", lambda f: rate(f) * each / 1e6),
        Metric("peak memory", "MiB", "lower", lambda f: f["memory"] / 2**20),
        Metric("open to first batch", "ms", "lower", lambda f: f["first_batch_ms"]),
        Metric("resume in mid-epoch to first batch", "ms", "lower", of_resume("ms")),
        Metric("state of the input in a checkpoint", "bytes", "lower", of_resume("bytes")),
    ]


def measure(bench, case):
    case.prepare()
    runners, resumes = {}, {}
    for runner in [OURS, *case.peers]:
        print(f"  {case.name}: {runner}, checking an epoch", file=sys.stderr, flush=True)
        case.warm()
        try:
            if case.what.get("kept"):
                case.build(runner)
            resume = case.check(runner)
        except RunFailed as reason:
            bench.note_failure(case.what["title"], runner, reason)
            continue
        if resume:
            resumes[runner] = resume
        extra = {"runner": runner, "build_s": case.built.get(runner)}
        runners[runner] = lambda runner=runner, extra=extra: {**case.measure(runner), **extra}
    bench.measure(case.what["title"], runners, metrics(case, resumes), case.args.repeats, contenders)
    bench.versions |= case.versions
    if case.what.get("kept"):
        bench.facts.setdefault("cache_bytes", {})[case.what["title"]] = case.cache_bytes()
    bench.facts.setdefault("bytes_per_record", {})[case.what["title"]] = case.truth["bytes"] / case.records


def contenders(figures):
    """Peers that may be the best by any of the two figures that tables of documents show."""
    names = [name for name in figures if name != OURS]
    windows = {name: figures[name]["window"] for name in names}
    near = set()
    for per in ("cpu_s", "seconds"):
        rates = {name: window["records"] / window[per] for name, window in windows.items()}
        near |= {name for name, rate in rates.items() if rate >= CONTENDER * max(rates.values())}
    return near


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--case", nargs="*", choices=list(CASES), default=list(CASES), help="only these; others keep their figures"
    )
    parser.add_argument("--only", nargs="*", help="only these peers; the result is printed, not kept")
    parser.add_argument("--all", action="store_true", help="also the ways to run a peer that were worse in every figure")
    parser.add_argument("--warm-up", type=float, default=2, help="seconds of reading before what is timed")
    parser.add_argument("--seconds", type=float, default=2, help="that are timed in each turn")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each")
    parser.add_argument("--quick", action="store_true", help="little data, one short turn of each; printed, not kept")
    args = parser.parse_args()
    if args.quick:
        args.warm_up, args.seconds, args.repeats = 0.2, 0.3, 1

    bench = Bench("input")
    keep = not args.quick and args.only is None
    if keep:
        bench.take_others([CASES[name]["title"] for name in args.case])
    with tempfile.TemporaryDirectory(prefix="input.") as folder:
        for name in args.case:
            measure(bench, Case(name, args, folder))
    return bench.finish(keep=keep)


if __name__ == "__main__":
    sys.exit(main())
