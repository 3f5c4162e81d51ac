"""Hugging Face datasets over the data of bench/input.py, streaming, so that every epoch reads the files: batches come
as Arrow tables, its fastest form, and become arrays at once. Files come in their order, and the buffer that mixes
single examples would undo the batches and is left out: unlike the others it mixes nothing.

In processes of their own it runs under PyTorch's DataLoader, each with its share of the files, as its documentation
has it.
"""

import os
import pickle

os.environ["HF_HUB_OFFLINE"] = "1"

import datasets  # noqa: E402
import torch  # noqa: E402
import torch.utils.data  # noqa: E402

import input_base  # noqa: E402

BUILDERS = {"csv": "csv", "jsonl": "json", "parquet": "parquet"}


class TableStream(torch.utils.data.IterableDataset):
    def __init__(self, pipeline, state=None):
        self.batch = pipeline.batch
        self.blocks = input_base.TableBlocks(pipeline.truth)
        stream = datasets.load_dataset(
            BUILDERS[pipeline.case], data_files=pipeline.files, streaming=True, split="train"
        )
        self.stream = stream.with_format("arrow")
        self.state = state
        self.epoch = 0

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        share = self.stream
        if worker:
            share = share.shard(worker.num_workers, worker.id)
        if self.state:
            share.load_state_dict(self.state)
        self.share = share
        while True:
            share.set_epoch(self.epoch)
            for piece in share.iter(self.batch):
                dense, labels = self.blocks.arrays(lambda name: piece.column(name).to_numpy(), piece.num_rows)
                yield {"dense": torch.from_numpy(dense), "labels": torch.from_numpy(labels)}
            self.epoch += 1


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
        return None if self.workers else pickle.dumps(self.stream.share.state_dict())


if __name__ == "__main__":
    input_base.main(dict.fromkeys(BUILDERS, Datasets), ["datasets", "pyarrow", "torch"])
