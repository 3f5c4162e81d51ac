"""TFRecord beside TensorFlow: TensorFlow reads what `lockstep` writes, and `lockstep` reads what TensorFlow writes, plain and
with GZIP compression. Called with the path of the program; exits with 77 (skipped) where the Python of LOCKSTEP_PEERS_PYTHON
has no tensorflow.
"""
import os
import pathlib
import random
import subprocess
import sys
import tempfile

SKIPPED = 77
ROWS = 3000


def lockstep(program, *arguments):
    subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


# The features of every record: a name to the list of its values.
def read(path, compression=""):
    import tensorflow as tf

    records = []
    for message in tf.data.TFRecordDataset(str(path), compression_type=compression):
        example = tf.train.Example.FromString(message.numpy())
        record = {}
        for name, feature in example.features.feature.items():
            kind = feature.WhichOneof("kind")
            record[name] = list(getattr(feature, kind).value) if kind else []
        records.append(record)
    return records


def check_generated(program, folder):
    import csv

    for form in ("csv", "tfrecord"):
        lockstep(program, "data", "synth", "fraud", "--rows", 5000, "--shards", 1, "--format", form, "--out", folder / form)
    with open(folder / "csv" / "train-00000-of-00001.csv", newline="") as text:
        rows = list(csv.DictReader(text))
    records = read(folder / "tfrecord" / "train-00000-of-00001.tfrecord")
    assert len(records) == len(rows), (len(records), len(rows))
    for row, record in zip(rows, records):
        for name, text in row.items():
            values = record.get(name, [])
            found = values[0] if values else ""
            found = found.decode() if isinstance(found, bytes) else found
            assert found == text or float(found) == float(text), (name, text, values)


def write(path, compression, records):
    import tensorflow as tf

    def feature(values):
        if isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type=compression)) as writer:
        for record in records:
            message = tf.train.Example(features=tf.train.Features(
                feature={name: feature(values) for name, values in record.items() if values}))
            writer.write(message.SerializeToString())


def check_read(program, folder):
    import pyarrow.parquet

    draw = random.Random(5)
    records = [{
        "n": [draw.randrange(-2**63, 2**63)],
        "x": [draw.randrange(-2**20, 2**20) / 1024] if draw.random() > 0.1 else [],
        "word": [f"word-{draw.randrange(10**6)}-é".encode()] if draw.random() > 0.1 else [],
    } for _ in range(ROWS)]
    for ending, compression in ((".tfrecord", ""), (".tfrecord.gz", "GZIP")):
        source = folder / f"theirs{ending}"
        write(source, compression, records)
        ours = folder / f"ours{ending}"
        lockstep(program, "data", "convert", source, "--from", "tfrecord", "--to", "parquet", "--out", ours)
        table = pyarrow.parquet.read_table(next(ours.glob("*.parquet")))
        for name in ("n", "x", "word"):
            found = table[name].to_pylist()
            for row, (value, record) in enumerate(zip(found, records, strict=True)):
                value = value.encode() if isinstance(value, str) else value
                expected = record[name][0] if record[name] else None
                assert value == expected, (ending, name, row, value, expected)


def main():
    python = os.environ.get("LOCKSTEP_PEERS_PYTHON")
    if python and "again" not in sys.argv:
        os.execv(python, [python, __file__, sys.argv[1], "again"])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        import pyarrow.parquet  # noqa: F401
        import tensorflow  # noqa: F401
    except ImportError as missing:
        print(f"SKIPPED: the Python of the peers cannot import {missing.name}")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        check_generated(sys.argv[1], pathlib.Path(folder))
        check_read(sys.argv[1], pathlib.Path(folder))


if __name__ == "__main__":
    main()
