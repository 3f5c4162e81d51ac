"""Hugging Face datasets over the data of bench/input.py, streaming, so that every epoch reads the files: 8,192 rows at a
time come as Arrow tables, its fastest form, become arrays at once, and are cut into batches. Files come in their order, and
the buffer that mixes single examples would undo the tables and is left out: unlike the others it mixes nothing.

In processes of their own it runs under PyTorch's DataLoader, each with its share of the files, as its documentation
has it.

In the cases with kept rows it does not stream: load_dataset writes its Arrow cache, map() normalises and writes that
once more, as one vector and one number a record, and batches are taken from that file, mapped into memory: in its order
and copied out of the map, or shuffled through the table of indices that shuffle() makes.
"""

import os
import pickle

os.environ["HF_HUB_OFFLINE"] = "1"

import datasets  # noqa: E402
import pyarrow  # noqa: E402
import torch  # noqa: E402
import torch.utils.data  # noqa: E402

import input_base  # noqa: E402

BUILDERS = {"csv": "csv", "jsonl": "json", "parquet": "parquet"}
BUILD_PROCESSES = 2
ROWS = 8192  # that are asked for at once; what a request costs beside its rows is that of several batches


class TableStream(torch.utils.data.IterableDataset):
    def __init__(self, pipeline, state=None):
        self.batch = pipeline.batch
        self.blocks = input_base.TableBlocks(pipeline.truth)
        stream = datasets.load_dataset(
            BUILDERS[pipeline.case.partition("_")[0]], data_files=pipeline.files, streaming=True, split="train"
        )
        self.stream = stream.with_format("arrow")
        # The epoch, the stream's state where the rows at hand were asked for, and the batches given of them.
        self.epoch, self.asked, self.given = state or (0, None, 0)

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        share = self.stream
        if worker:
            share = share.shard(worker.num_workers, worker.id)
        if self.asked:
            share.load_state_dict(self.asked)
        while True:
            share.set_epoch(self.epoch)
            for piece in share.iter(ROWS):
                block = self.blocks.arrays(lambda name: piece.column(name).to_numpy(), piece.num_rows)
                for at in range(self.given * self.batch, piece.num_rows, self.batch):
                    self.given += 1
                    dense, labels = (torch.from_numpy(values[at : at + self.batch]) for values in block)
                    yield {"dense": dense, "labels": labels}
                self.asked, self.given = share.state_dict(), 0
            self.epoch, self.asked = self.epoch + 1, None

    def state(self):
        return self.epoch, self.asked, self.given


class Datasets(input_base.Pipeline):
    def start(self):
        torch.set_num_threads(1)
        datasets.disable_progress_bars()

    def open(self, state=None):
        self.stream = TableStream(self, state and pickle.loads(state))
        if not self.workers:
            return iter(self.stream)
        loader = torch.utils.data.DataLoader(self.stream, batch_size=None, num_workers=self.workers, prefetch_factor=4)
        return iter(loader)

    def save(self, iterator):
        return None if self.workers else pickle.dumps(self.stream.state())


class Encode:
    """Columns of a table as one vector of normalised numbers and a label."""

    def __init__(self, truth):
        self.truth = truth

    def __call__(self, piece):
        blocks = input_base.TableBlocks(self.truth)
        dense, labels = blocks.arrays(lambda name: piece[name].to_numpy(), piece.num_rows)
        vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(dense.reshape(-1)), dense.shape[1])
        return pyarrow.table({"dense": vectors, "labels": labels})


class KeptTable(torch.utils.data.IterableDataset):
    """From what is kept; `state` says how far an earlier one was."""

    def __init__(self, pipeline, kept, state=None):
        self.batch, self.mixed = pipeline.batch, pipeline.case.endswith("_mixed")
        self.kept = kept
        self.epoch, self.done = state or (0, 0)

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        while True:
            order = self.kept.shuffle(seed=self.epoch, keep_in_memory=True) if self.mixed else self.kept
            if worker:
                order = order.shard(worker.num_workers, worker.id, contiguous=True)
            if self.done:
                order = order.select(range(self.done, len(order)))
            for piece in order.iter(ROWS):
                dense, labels = self.vectors(piece), piece.column("labels").to_numpy()
                for at in range(0, piece.num_rows, self.batch):
                    self.done += min(self.batch, piece.num_rows - at)
                    part = slice(at, at + self.batch)
                    yield {"dense": self.owned(dense[part]), "labels": self.owned(labels[part])}
            self.epoch, self.done = self.epoch + 1, 0

    def vectors(self, piece):
        column = piece.column("dense").combine_chunks()
        return column.flatten().to_numpy(zero_copy_only=False).reshape(piece.num_rows, -1)

    def owned(self, values):
        """What is shuffled was gathered into memory of its own; what is not, lies in the file."""
        return torch.from_numpy(values if self.mixed and values.flags.writeable else values.copy())


class KeptDatasets(Datasets):
    def load(self):
        files = self.case.partition("_")[0]
        table = datasets.load_dataset(
            BUILDERS[files], data_files=self.files, split="train", cache_dir=self.cache, num_proc=BUILD_PROCESSES
        )
        width = len(self.truth["names"])
        features = datasets.Features(
            {"dense": datasets.Sequence(datasets.Value("float32"), length=width), "labels": datasets.Value("float32")}
        )
        encoded = table.with_format("arrow").map(
            Encode(self.truth),
            batched=True,
            batch_size=8192,
            features=features,
            remove_columns=table.column_names,
            num_proc=BUILD_PROCESSES,
        )
        return encoded.with_format("arrow")

    def build(self):
        self.load()

    def open(self, state=None):
        self.stream = KeptTable(self, self.load(), state and pickle.loads(state))
        if not self.workers:
            return iter(self.stream)
        loader = torch.utils.data.DataLoader(self.stream, batch_size=None, num_workers=self.workers, prefetch_factor=4)
        return iter(loader)

    def save(self, iterator):
        return None if self.workers else pickle.dumps((self.stream.epoch, self.stream.done))


if __name__ == "__main__":
    kept = dict.fromkeys(["parquet_mixed", "parquet_ordered"], KeptDatasets)
    input_base.main({**dict.fromkeys([*BUILDERS, "parquet_unmixed"], Datasets), **kept}, ["datasets", "pyarrow", "torch"])
