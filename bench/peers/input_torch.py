"""PyTorch's DataLoader over the data of bench/input.py.

It brings no reader for tables, so these are read as its users do who need speed: an iterable data set whose workers
share the files among them and read large pieces with pyarrow (of Parquet whole row groups), mix the rows of a piece, and
give whole batches, which the loader passes on as they are (batch_size=None). Resuming is StatefulDataLoader's, of
torchdata; it takes more time in every step, so that the throughput is the plain loader's.

Tokens and images are map-style data sets under a shuffled sampler. Rows of tokens are taken for a whole batch at once
(__getitems__) from memory-mapped files. JPEGs are decoded and scaled by torchvision's own operations on bytes, and
normalised as a batch.
"""

import pickle

import numpy
import pyarrow
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import torch
import torch.utils.data
import torchdata.stateful_dataloader
import torchvision

import input_base

PIECE = 4 << 20  # bytes that pyarrow parses at once


class TableFiles(torch.utils.data.IterableDataset):
    def __init__(self, pipeline, pieces):
        self.files, self.batch, self.pieces = pipeline.files, pipeline.batch, pieces
        self.blocks = input_base.TableBlocks(pipeline.truth)
        self.epoch = self.file = self.given = 0

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        share = self.files[worker.id :: worker.num_workers] if worker else self.files
        while True:
            order = numpy.random.default_rng([7, self.epoch]).permutation(len(share))
            while self.file < len(order):
                # Of a file's own, so that going on in its middle finds the same rows.
                random = numpy.random.default_rng([7, self.epoch, self.file])
                skip, self.given = self.given, 0
                for number, batch in enumerate(self.batches(share[order[self.file]], random)):
                    if number >= skip:
                        self.given = number + 1
                        yield {name: torch.from_numpy(values) for name, values in batch.items()}
                self.file, self.given = self.file + 1, 0
            self.epoch, self.file = self.epoch + 1, 0

    def batches(self, path, random):
        held = None  # rows that did not fill a batch yet
        for piece in self.pieces(path, self.blocks.names + ["label"]):
            rows = piece.num_rows
            block = self.blocks.arrays(lambda name: piece.column(name).to_numpy(zero_copy_only=False), rows)
            order = random.permutation(rows)
            if held:
                missing = self.batch - len(held[1])
                held = tuple(numpy.concatenate([old, new.take(order[:missing], 0)]) for old, new in zip(held, block))
                order = order[missing:]
                if len(held[1]) < self.batch:
                    continue
                yield self.named(held)
            whole = len(order) // self.batch * self.batch
            for chosen in order[:whole].reshape(-1, self.batch):
                yield self.named(values.take(chosen, 0) for values in block)
            held = tuple(values.take(order[whole:], 0) for values in block) if whole < len(order) else None

    def named(self, arrays):
        return dict(zip(("dense", "labels"), arrays))

    def state_dict(self):
        return {"epoch": self.epoch, "file": self.file, "given": self.given}

    def load_state_dict(self, state):
        self.epoch, self.file, self.given = state["epoch"], state["file"], state["given"]


def types(names):
    return {name: pyarrow.float32() for name in names}


def csv_pieces(path, names):
    return pyarrow.csv.open_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=PIECE),
        convert_options=pyarrow.csv.ConvertOptions(column_types=types(names), include_columns=names),
    )


def jsonl_pieces(path, names):
    return pyarrow.json.open_json(
        path,
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=PIECE),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=pyarrow.schema(list(types(names).items())), unexpected_field_behavior="ignore"
        ),
    )


def parquet_pieces(path, names):
    file = pyarrow.parquet.ParquetFile(path)
    return (file.read_row_group(group, names, use_threads=False) for group in range(file.num_row_groups))


class Loader(input_base.Pipeline):
    """One DataLoader over a data set that gives whole batches and never ends."""

    def __init__(self, args, truth, dataset):
        super().__init__(args, truth)
        self.dataset = lambda: dataset(self)

    def start(self):
        torch.set_num_threads(1)

    def options(self):
        more = {"prefetch_factor": 4} if self.workers else {}
        return {"batch_size": None, "num_workers": self.workers, **more}

    def open(self, state=None):
        if state is None:
            return iter(torch.utils.data.DataLoader(self.dataset(), **self.options()))
        loader = torchdata.stateful_dataloader.StatefulDataLoader(self.dataset(), **self.options())
        loader.load_state_dict(pickle.loads(state))
        return iter(loader)

    def open_stateful(self):
        self.stateful = torchdata.stateful_dataloader.StatefulDataLoader(self.dataset(), **self.options())
        return iter(self.stateful)

    def save(self, iterator):
        return pickle.dumps(self.stateful.state_dict())


def table(pieces):
    return lambda args, truth: Loader(args, truth, lambda pipeline: TableFiles(pipeline, pieces))


class TokenRows(torch.utils.data.Dataset):
    def __init__(self, pipeline):
        self.files = input_base.TokenFiles(pipeline)

    def __len__(self):
        return len(self.files)

    def __getitems__(self, indices):
        rows = torch.from_numpy(self.files.rows(indices))
        return {"tokens": rows[:, :-1], "targets": rows[:, 1:]}


class Images(torch.utils.data.Dataset):
    def __init__(self, pipeline):
        folder = pipeline.folder / "images"
        labels = {path.name: label for label, path in enumerate(sorted(folder.glob("class-*")))}
        self.samples = torchvision.datasets.folder.make_dataset(folder, labels, extensions=(".jpg",))
        self.means = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1) * 255
        self.scales = 1 / (torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1) * 255)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        image = torchvision.io.decode_jpeg(torchvision.io.read_file(path), mode=torchvision.io.ImageReadMode.RGB)
        side = min(image.shape[1:])
        top, left = (image.shape[1] - side) // 2, (image.shape[2] - side) // 2
        square = image[:, top : top + side, left : left + side]
        return torchvision.transforms.functional.resize(square, [224, 224], antialias=True), label

    def __getitems__(self, indices):
        images, labels = zip(*map(self.__getitem__, indices))
        images = torch.stack(images).float().sub_(self.means).mul_(self.scales)
        return {"images": images, "labels": torch.tensor(labels)}


def whole(batch):
    """What __getitems__ gave is a batch already."""
    return batch


class MapLoader(Loader):
    """A data set of records that the loader shuffles and batches, one epoch after another."""

    def options(self):
        more = {"prefetch_factor": 4, "persistent_workers": True} if self.workers else {}
        return {"batch_size": self.batch, "shuffle": True, "collate_fn": whole, "num_workers": self.workers, **more}

    def open(self, state=None):
        if state is not None:
            return super().open(state)
        return self.epochs(torch.utils.data.DataLoader(self.dataset(), **self.options()))

    def epochs(self, loader):
        while True:
            yield from loader


def rows(dataset):
    return lambda args, truth: MapLoader(args, truth, dataset)


PIPELINES = {
    "csv": table(csv_pieces),
    "jsonl": table(jsonl_pieces),
    "parquet": table(parquet_pieces),
    "tokens": rows(TokenRows),
    "jpeg": rows(Images),
}

if __name__ == "__main__":
    input_base.main(PIPELINES, ["torch", "torchdata", "torchvision", "pyarrow"])
