"""WebDataset over the tar shards of bench/input.py: the same JPEGs as the folders hold, as it is documented: shards
shuffled, then samples in a buffer, decoded by Pillow, batched, with PyTorch's DataLoader where there are workers. It
cannot resume in the middle of an epoch.
"""

import io

import numpy
import torch
import torch.utils.data
import webdataset
from PIL import Image

import input_base

SHUFFLE = 1000
MEANS = numpy.array([0.485, 0.456, 0.406], numpy.float32) * 255
SCALES = 1 / (numpy.array([0.229, 0.224, 0.225], numpy.float32) * 255)


def decode(sample):
    content, label = sample
    image = Image.open(io.BytesIO(content))
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    small = image.resize((224, 224), Image.BILINEAR, box=(left, top, left + side, top + side))
    return numpy.asarray(small), int(label)


def collate(samples):
    images, labels = zip(*samples)
    images = (numpy.stack(images) - MEANS) * SCALES
    return {"images": torch.from_numpy(images), "labels": torch.tensor(labels)}


class Tars(input_base.Pipeline):
    def start(self):
        torch.set_num_threads(1)

    def dataset(self):
        shards = sorted(map(str, (self.folder / "tar").glob("part-*.tar")))
        samples = webdataset.WebDataset(
            shards, shardshuffle=len(shards), workersplitter=webdataset.split_by_worker, empty_check=False
        )
        return samples.shuffle(SHUFFLE).to_tuple("jpg", "cls").map(decode).batched(self.batch, collation_fn=collate)

    def open(self, state=None):
        more = {"prefetch_factor": 4, "persistent_workers": True} if self.workers else {}
        return self.epochs(webdataset.WebLoader(self.dataset(), batch_size=None, num_workers=self.workers, **more))

    def epochs(self, loader):
        while True:
            yield from loader


if __name__ == "__main__":
    input_base.main({"jpeg": Tars}, ["webdataset", "pillow", "torch"])
