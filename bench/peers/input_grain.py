"""Grain over the data of bench/input.py: its own readers of TFRecord and Parquet, and for lines of JSON the random
access that it is made for, to lines whose places were found beforehand. Records are parsed one by one in Python,
batched, then normalised together. With workers, these are its processes (mp_prefetch); without, its threads.
"""

import json
import mmap
import pickle

import grain
import numpy
from PIL import Image

import input_base

WINDOW = 8192  # records that are mixed where there is no random access
CHANNEL_MEANS, CHANNEL_DEVIATIONS = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
THREADS = 0  # its default is 16; where Python does the work they take 20 times as long as none


def mapped(path):
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class Lines:
    """A RandomAccessDataSource over the lines of files, mapped into memory."""

    def __init__(self, files):
        self.files, self.maps = files, None
        starts = []
        for number, path in enumerate(files):
            ends = numpy.flatnonzero(numpy.memmap(path, numpy.uint8, "r") == ord("\n")) + 1
            begins = numpy.concatenate(([0], ends[:-1]))
            starts.append(numpy.stack([numpy.full_like(ends, number), begins, ends], 1))
        self.starts = numpy.concatenate(starts)

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        if self.maps is None:
            self.maps = list(map(mapped, self.files))
        file, begin, end = self.starts[index]
        return self.maps[file][begin:end]

    def __getstate__(self):
        return {**self.__dict__, "maps": None}


class Grain(input_base.Pipeline):
    def __init__(self, args, truth):
        super().__init__(args, truth)
        if "names" in truth:
            self.blocks = input_base.TableBlocks(truth)
            self.names = [*truth["names"], "label"]
        self.lines = Lines(self.files) if self.case == "jsonl" else None

    def row(self, columns):
        """One record as an array, of which a batch is stacked much faster than of 40 numbers."""
        return numpy.array([columns[name] for name in self.names], numpy.float32)

    def normalised(self, rows):
        dense = rows[:, :-1]
        return {"dense": (dense - self.blocks.means) * self.blocks.scales, "labels": rows[:, -1]}

    def records_of(self):
        if self.case == "jsonl":
            lines = grain.MapDataset.source(self.lines).shuffle(7).repeat().map(json.loads).map(self.row)
            return lines.to_iter_dataset(grain.ReadOptions(num_threads=THREADS, prefetch_buffer_size=0))
        reader = {"tfrecord": grain.experimental.TFRecordIterDataset, "parquet": grain.experimental.ParquetIterDataset}
        files = grain.MapDataset.source(self.files).shuffle(7).repeat().map(reader[self.case])
        mixed = grain.experimental.InterleaveIterDataset(files, cycle_length=len(self.files) // max(1, self.workers))
        mixed = grain.experimental.WindowShuffleIterDataset(mixed, window_size=WINDOW, seed=7)
        return mixed.map(self.example if self.case == "tfrecord" else self.row)

    def example(self, record):
        import tensorflow  # the only parser of an Example from pip; loaded where it is used

        features = tensorflow.train.Example.FromString(record).features.feature
        kinds = (features[name] for name in self.names)
        lists = (kind.int64_list if kind.HasField("int64_list") else kind.float_list for kind in kinds)
        return numpy.array([values.value[0] for values in lists], numpy.float32)

    def open(self, state=None):
        return self.iterator(self.records_of().batch(self.batch, drop_remainder=True).map(self.normalised), state)

    def iterator(self, dataset, state):
        if self.workers:
            dataset = dataset.mp_prefetch(grain.MultiprocessingOptions(num_workers=self.workers))
        iterator = iter(dataset)
        if state is not None:
            iterator.set_state(pickle.loads(state))
        return iterator

    def save(self, iterator):
        return pickle.dumps(iterator.get_state())


class Rows(Grain):
    """Map-style: records by their number, in Grain's shuffled order."""

    def open(self, state=None):
        rows = grain.MapDataset.source(self.source()).shuffle(7).repeat()
        rows = rows.to_iter_dataset(grain.ReadOptions(num_threads=THREADS, prefetch_buffer_size=0))
        return self.iterator(rows.batch(self.batch, drop_remainder=True).map(self.finished), state)


class Tokens(Rows):
    def source(self):
        return TokenRows(self)

    def finished(self, rows):
        return {"tokens": rows[:, :-1], "targets": rows[:, 1:]}


class TokenRows:
    def __init__(self, pipeline):
        self.files = input_base.TokenFiles(pipeline)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.files.row(index).astype(numpy.int32)


class Jpegs(Rows):
    def source(self):
        return Images(self.folder / "images")

    def finished(self, batch):
        means = numpy.array(CHANNEL_MEANS, numpy.float32) * 255
        scales = 1 / (numpy.array(CHANNEL_DEVIATIONS, numpy.float32) * 255)
        return {"images": (batch["images"] - means) * scales, "labels": batch["labels"]}


class Images:
    """JPEGs decoded and scaled by Pillow."""

    def __init__(self, folder):
        self.paths = sorted(folder.glob("*/*.jpg"))
        classes = sorted({path.parent.name for path in self.paths})
        self.labels = [classes.index(path.parent.name) for path in self.paths]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index])
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        small = image.resize((224, 224), Image.BILINEAR, box=(left, top, left + side, top + side))
        return {"images": numpy.asarray(small), "labels": self.labels[index]}


if __name__ == "__main__":
    from absl import flags

    flags.FLAGS(["input_grain"])
    tables = dict.fromkeys(["jsonl", "tfrecord", "parquet"], Grain)
    input_base.main({**tables, "tokens": Tokens, "jpeg": Jpegs}, ["grain", "pillow"])
