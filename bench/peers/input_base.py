"""What the peers of bench/input.py have in common: how they are timed, and what they print.

A peer gives a Pipeline: open() starts reading in an already started process and gives an iterator over the batches of
one epoch after another; a batch is a dict of arrays or tensors under the names that Lockstep gives its inputs. Where
the peer can resume, save(iterator) gives its state as bytes and open(state) goes on from there. Where it reads what it
made of the data once and keeps in a folder (--cache), `--build` makes that and prints the seconds it took.

One JSON line comes out: milliseconds from opening to the first batch; records, seconds and processor time of a window
of continuous reading, after some seconds of warming up; and with --check the sums of one epoch, one of which ties the
labels to their records, and resuming in its middle. Processor time is that of the whole tree of processes. The same is
printed by `lockstep data bench --json`.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import time

import numpy


BLOCK_ROWS = 8192  # of a table that are put together at once: 1.3 MB, which stay in a core's cache


class Pipeline:
    def __init__(self, args, truth):
        self.folder = pathlib.Path(args.folder)
        self.files = sorted(map(str, self.folder.glob("part-*")))
        self.case, self.batch, self.workers, self.cache = args.case, args.batch, args.workers, args.cache
        self.records, self.truth = truth["records"], truth

    def start(self):
        """Loads what loads lazily, so that opening is not charged for it."""

    def build(self):
        """Makes what is kept in self.cache."""
        raise NotImplementedError

    def open(self, state=None):
        raise NotImplementedError

    def open_stateful(self):
        """As open(), for a save()."""
        return self.open()

    def open_epoch(self):
        """As open(), for adding up one epoch: no batch of the next one may come before its end."""
        return self.open()

    def save(self, iterator):
        """None where the peer cannot go on in the middle of an epoch."""
        return None


class TableBlocks:
    """Columns of a table as dense f32[B, D], normalised, and labels f32[B]."""

    def __init__(self, truth):
        self.names = truth["names"]
        self.means = numpy.array(truth["means"], numpy.float32)
        self.scales = (1 / numpy.array(truth["deviations"])).astype(numpy.float32)

    def arrays(self, column, rows):
        """column(name) gives the numbers of a column of that many rows."""
        columns = [column(name) for name in self.names]
        dense = numpy.empty((rows, len(self.names)), numpy.float32)
        for at in range(0, rows, BLOCK_ROWS):
            block = numpy.empty((len(columns), min(BLOCK_ROWS, rows - at)), numpy.float32)
            for i, values in enumerate(columns):
                block[i] = values[at : at + BLOCK_ROWS]
            block -= self.means[:, None]
            block *= self.scales[:, None]
            dense[at : at + BLOCK_ROWS] = block.T
        return dense, numpy.asarray(column("label"), numpy.float32)


class TokenFiles:
    """Rows of T tokens of all files, mapped into memory; row i of a file holds tokens [i T, i T + T + 1)."""

    def __init__(self, pipeline):
        self.files, self.T = pipeline.files, pipeline.truth["seq"]
        self.each = pipeline.records // len(self.files)
        self.maps = None

    def __len__(self):
        return self.each * len(self.files)

    def row(self, index):
        if self.maps is None:
            # As plain arrays: a slice of a memmap is an object of its own class, which takes five times as long to make.
            self.maps = [numpy.memmap(path, numpy.uint16, "r", offset=1024).view(numpy.ndarray) for path in self.files]
        file, row = divmod(int(index), self.each)
        return self.maps[file][row * self.T : row * self.T + self.T + 1]

    def rows(self, indices):
        """All of them as one array, [B, T + 1]."""
        out = numpy.empty((len(indices), self.T + 1), numpy.int32)
        for to, index in enumerate(indices):
            out[to] = self.row(index)
        return out

    def __getstate__(self):
        return {**self.__dict__, "maps": None}


# ---- processor time of a tree of processes ---------------------------------------------------------------------------


def tree_seconds():
    """User and system time of this process and all below it, those that have ended included."""
    parents, spent = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            fields = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry)] = int(fields[1])
        spent[int(entry)] = sum(map(int, fields[11:15]))

    def below(process):
        while process not in (0, os.getpid()):
            process = parents.get(process, 0)
        return process != 0

    return sum(spent[process] for process in parents if below(process)) / os.sysconf("SC_CLK_TCK")


# ---- measuring -------------------------------------------------------------------------------------------------------


def as_numpy(values):
    return values.numpy() if hasattr(values, "numpy") else numpy.asarray(values)


def add_up(totals, batch):
    """Sums that no order changes: of every column, and of the products of a record's columns, which change when labels move
    to other records."""
    product = 1.0
    for name, values in batch.items():
        values = as_numpy(values).astype(numpy.float64)
        if values.ndim == 4 and values.shape[1] == 3:
            values = values.transpose(0, 2, 3, 1)  # torch's order of an image's axes
        values = values.reshape(len(values), -1)
        of_records = values @ numpy.arange(1.0, values.shape[1] + 1)
        into = totals["columns"].setdefault(name, {"sum": 0.0, "squares": 0.0})
        into["sum"] += float(of_records.sum())
        into["squares"] += float((values * values).sum())
        product = product * of_records
    totals["tie"] += float(product.sum())
    totals["records"] += len(product)


def rows_of(batch):
    return len(next(iter(batch.values())))


def read_for(iterator, seconds):
    begin = time.perf_counter()
    records = 0
    while True:
        records += rows_of(next(iterator))
        now = time.perf_counter()
        if now - begin >= seconds:
            return records, now - begin


def check(pipeline):
    iterator = pipeline.open_epoch()
    totals, resume = {"records": 0, "columns": {}, "tie": 0.0}, None
    while totals["records"] < pipeline.records:
        add_up(totals, next(iterator))
    iterator = pipeline.open_stateful()
    for _ in range(pipeline.records // pipeline.batch // 2):
        next(iterator)
    state = pipeline.save(iterator)
    if state is not None:
        expected = {name: as_numpy(values).copy() for name, values in next(iterator).items()}
        del iterator
        start = time.perf_counter()
        resumed = next(pipeline.open(state))
        ms = 1e3 * (time.perf_counter() - start)
        same = all(numpy.array_equal(expected[name], as_numpy(resumed[name])) for name in expected)
        resume = {"ms": ms, "bytes": len(state), "same": same}
    return {"gate": totals, "resume": resume}


def main(pipelines, packages):
    """`pipelines` maps cases to functions that make a Pipeline of (args, truth)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=list(pipelines))
    parser.add_argument("folder")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--warm-up", type=float, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--cache", help="the folder of what is made once")
    parser.add_argument("--build", action="store_true")
    args = parser.parse_args()
    truth = json.loads((pathlib.Path(args.folder) / "truth.json").read_text())
    pipeline = pipelines[args.case](args, truth)
    pipeline.start()

    start = time.perf_counter()
    if args.build:
        pipeline.build()
        print(json.dumps({"build_s": time.perf_counter() - start}), flush=True)
        return
    iterator = pipeline.open()
    next(iterator)
    figures = {"first_batch_ms": 1e3 * (time.perf_counter() - start)}
    read_for(iterator, args.warm_up)
    processor = tree_seconds()
    records, seconds = read_for(iterator, args.seconds)
    figures["window"] = {"seconds": seconds, "records": records, "cpu_s": tree_seconds() - processor}
    del iterator
    if args.check:
        figures.update(check(pipeline))
    figures["versions"] = {package: importlib.metadata.version(package) for package in packages}
    print(json.dumps(figures), flush=True)
