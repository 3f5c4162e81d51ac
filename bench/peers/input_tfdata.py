"""tf.data over the data of bench/input.py, as its guide to performance has it: files interleaved, records shuffled
while they are still bytes, batched, then parsed by one vectorised call, with parallelism and prefetching left to
AUTOTUNE and order not kept where it need not be. There is no reader of JSON lines or Parquet in TensorFlow.
"""

import os
import pathlib
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy  # noqa: E402
import tensorflow as tf  # noqa: E402

import input_base  # noqa: E402

AUTO = tf.data.AUTOTUNE
SHUFFLE = 8192  # records in the buffer


class TfData(input_base.Pipeline):
    epochs = None  # without end

    def __init__(self, args, truth):
        super().__init__(args, truth)
        tf.random.set_seed(7)
        if "names" in truth:
            self.means = tf.constant(truth["means"], tf.float32)
            self.scales = tf.constant(1 / numpy.array(truth["deviations"]), tf.float32)

    def start(self):
        list(tf.data.Dataset.range(8).shuffle(8).batch(2).map(lambda x: x + 1, num_parallel_calls=AUTO).prefetch(AUTO))

    def records_of(self, read):
        """All records of all files as bytes, shuffled."""
        files = tf.data.Dataset.from_tensor_slices(self.files).shuffle(len(self.files))
        options = {"num_parallel_calls": AUTO, "deterministic": False, "cycle_length": len(self.files)}
        return files.interleave(read, **options).shuffle(SHUFFLE).repeat(self.epochs)

    def batches(self, read, parse):
        records = self.records_of(read).batch(self.batch, drop_remainder=True)
        return records.map(parse, num_parallel_calls=AUTO, deterministic=False).prefetch(AUTO)

    def normalised(self, columns):
        dense = tf.stack([tf.cast(columns[name], tf.float32) for name in self.truth["names"]], 1)
        return {"dense": (dense - self.means) * self.scales, "labels": tf.cast(columns["label"], tf.float32)}

    def open(self, state=None):
        iterator = iter(self.dataset())
        if state is not None:
            with tempfile.TemporaryDirectory() as folder:
                for name, content in self.files_of_state:
                    (pathlib.Path(folder) / name).write_bytes(content)
                tf.train.Checkpoint(iterator=iterator).read(f"{folder}/state").assert_consumed()
        return iterator

    def open_epoch(self):
        # Where order need not be kept, a batch of the next epoch may overtake the last ones of this.
        self.epochs = 1
        try:
            return self.open()
        finally:
            self.epochs = None

    def save(self, iterator):
        with tempfile.TemporaryDirectory() as folder:
            tf.train.Checkpoint(iterator=iterator).write(f"{folder}/state")
            paths = sorted(path for path in pathlib.Path(folder).iterdir())
            self.files_of_state = [(path.name, path.read_bytes()) for path in paths]
        return b"".join(content for _, content in self.files_of_state)


class Csv(TfData):
    def dataset(self):
        names = [*self.truth["names"], "label"]
        defaults = [tf.constant([], tf.float32)] * len(names)

        def parse(lines):
            return self.normalised(dict(zip(names, tf.io.decode_csv(lines, defaults, use_quote_delim=False))))

        return self.batches(lambda path: tf.data.TextLineDataset(path).skip(1), parse)


class TfRecord(TfData):
    def dataset(self):
        features = {
            name: tf.io.FixedLenFeature([], tf.int64 if name[0] in "cl" else tf.float32)
            for name in [*self.truth["names"], "label"]
        }

        def parse(records):
            return self.normalised(tf.io.parse_example(records, features))

        return self.batches(tf.data.TFRecordDataset, parse)


class Tokens(TfData):
    def dataset(self):
        T = self.truth["seq"]

        def rows(path):
            # Rows overlap by one token, which records of fixed length cannot: two readers, one a token further.
            first = tf.data.FixedLengthRecordDataset(path, 2 * T, header_bytes=1024, footer_bytes=2)
            next_ = tf.data.FixedLengthRecordDataset(path, 2 * T, header_bytes=1026)
            return tf.data.Dataset.zip((first, next_))

        def parse(tokens, targets):
            return {
                name: tf.cast(tf.io.decode_raw(values, tf.uint16), tf.int32)
                for name, values in (("tokens", tokens), ("targets", targets))
            }

        return self.batches(rows, parse)


class Jpeg(TfData):
    def dataset(self):
        paths = sorted(map(str, (self.folder / "images").glob("*/*.jpg")))
        classes = sorted({pathlib.Path(path).parent.name for path in paths})
        labels = [classes.index(pathlib.Path(path).parent.name) for path in paths]
        means = tf.constant([0.485, 0.456, 0.406]) * 255
        scales = 1 / (tf.constant([0.229, 0.224, 0.225]) * 255)

        def decode(path, label):
            content = tf.io.read_file(path)
            height, width = tf.unstack(tf.io.extract_jpeg_shape(content)[:2])
            side = tf.minimum(height, width)
            window = tf.stack([(height - side) // 2, (width - side) // 2, side, side])
            square = tf.io.decode_and_crop_jpeg(content, window, channels=3)
            return tf.image.resize(square, [224, 224], antialias=True), label

        def normalise(images, labels):
            return {"images": (images - means) * scales, "labels": labels}

        files = tf.data.Dataset.from_tensor_slices((paths, labels)).shuffle(len(paths)).repeat(self.epochs)
        images = files.map(decode, num_parallel_calls=AUTO, deterministic=False)
        batches = images.batch(self.batch, drop_remainder=True)
        return batches.map(normalise, num_parallel_calls=AUTO).prefetch(AUTO)


PIPELINES = {"csv": Csv, "tfrecord": TfRecord, "tokens": Tokens, "jpeg": Jpeg}

if __name__ == "__main__":
    input_base.main(PIPELINES, ["tensorflow-cpu"])
