"""polars over the tables of bench/input.py: a file at a time becomes a frame, read by as many of its threads as it is told
(--workers), and the rows of a frame are mixed and cut into batches. There are no batches ahead: that is the caller's.
"""

import os
import pickle
import sys

# Its threads start when it is imported.
os.environ["POLARS_MAX_THREADS"] = sys.argv[sys.argv.index("--workers") + 1]

import numpy  # noqa: E402
import polars  # noqa: E402

import input_base  # noqa: E402


def read_csv(path, schema):
    return polars.read_csv(path, schema=schema).rechunk()


def read_jsonl(path, schema):
    return polars.read_ndjson(path, schema=schema).rechunk()


class Frames(input_base.Pipeline):
    def __init__(self, args, truth, read):
        super().__init__(args, truth)
        self.read = read
        self.blocks = input_base.TableBlocks(truth)
        self.schema = dict.fromkeys([*truth["names"], "label"], polars.Float32)

    def open(self, state=None):
        self.at = pickle.loads(state) if state else (0, 0, 0)
        return self.batches()

    def save(self, iterator):
        return pickle.dumps(self.at)

    def batches(self):
        epoch, file, given = self.at
        while True:
            order = numpy.random.default_rng([7, epoch]).permutation(len(self.files))
            for number in range(file, len(order)):
                rows = self.rows_of(self.files[order[number]], numpy.random.default_rng([7, epoch, number]), given)
                for given, batch in rows:
                    self.at = epoch, number, given
                    yield batch
                given = 0
            epoch, file = epoch + 1, 0

    def rows_of(self, path, random, given):
        """The batches of a file from number `given` on, each with how many there were then."""
        frame = self.read(path, self.schema)
        dense, labels = self.blocks.arrays(lambda name: frame[name].to_numpy(), len(frame))
        order = random.permutation(len(frame))
        for at in range(given * self.batch, len(order), self.batch):
            chosen = order[at : at + self.batch]
            given += 1
            yield given, {"dense": dense.take(chosen, 0), "labels": labels.take(chosen)}


if __name__ == "__main__":
    tables = {"csv": read_csv, "jsonl": read_jsonl}
    input_base.main(
        {case: lambda args, truth, read=read: Frames(args, truth, read) for case, read in tables.items()}, ["polars"]
    )
