"""Writes the golden TFRecord files with TensorFlow: tf.train.Example messages as its writer frames and compresses them.

    python tests/golden/tfrecord/make_tfrecord.py      # into the folder of this script; written with tensorflow 2.21.0

Record r is a function of r that tfrecord_test.cc repeats.
"""
import pathlib

import tensorflow as tf

RECORDS = 300


def example(r):
    features = {
        "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[r * r * 1000003 * (1 if r % 2 else -1)])),
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=[r / 8])),
        "word": tf.train.Feature(bytes_list=tf.train.BytesList(value=[f"k{r * 31 % 17}é".encode()])),
        "pair": tf.train.Feature(float_list=tf.train.FloatList(value=[r / 4, -r / 2])),
        "list": tf.train.Feature(int64_list=tf.train.Int64List(value=[r - i for i in range(r % 4)])),
    }
    if r % 7 == 3:
        del features["x"]  # missing
    if r % 11 == 5:
        features["word"] = tf.train.Feature(bytes_list=tf.train.BytesList())  # missing as well
    if r % 13 == 1:
        features["other"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"\xff\x00" * (r % 100)]))
    return tf.train.Example(features=tf.train.Features(feature=features))


def main():
    folder = pathlib.Path(__file__).parent
    for name, compression in (("plain.tfrecord", ""), ("gzip.tfrecord.gz", "GZIP")):
        with tf.io.TFRecordWriter(str(folder / name), tf.io.TFRecordOptions(compression_type=compression)) as writer:
            for r in range(RECORDS):
                writer.write(example(r).SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
