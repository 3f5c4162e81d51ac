"""Parquet beside pyarrow: pyarrow reads what `lockstep` writes, and `lockstep` reads what pyarrow writes, in every
encoding, compression and page version of the subset. Called with the path of the program; exits with 77 (skipped) where
the Python of LOCKSTEP_PEERS_PYTHON has no pyarrow.
"""
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

SKIPPED = 77
ROWS = 30000


def lockstep(program, *arguments):
    subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def check_generated(program, folder):
    import pyarrow.csv
    import pyarrow.parquet

    for form in ("csv", "parquet"):
        lockstep(program, "data", "synth", "fraud", "--rows", 5000, "--shards", 1, "--format", form, "--out", folder / form)
    text = pyarrow.csv.read_csv(folder / "csv" / "train-00000-of-00001.csv",
                                convert_options=pyarrow.csv.ConvertOptions(
                                    column_types={"time": pyarrow.string()}, strings_can_be_null=False))
    columns = pyarrow.parquet.read_table(folder / "parquet" / "train-00000-of-00001.parquet", page_checksum_verification=True)
    assert columns.column_names == text.column_names, (columns.column_names, text.column_names)
    for name in text.column_names:
        assert columns[name].to_pylist() == text[name].to_pylist(), f"generated column {name} differs"


def table():
    import pyarrow as pa

    draw = random.Random(5)
    words = [f"word-{draw.randrange(10**6)}-é" for _ in range(200)]

    def some(make, missing):
        return [None if draw.random() < missing else make() for _ in range(ROWS)]

    return pa.table({
        "i32": pa.array(some(lambda: draw.randrange(-2**31, 2**31), 0.1), pa.int32()),
        "few": pa.array(some(lambda: draw.randrange(7), 0.0), pa.int64()),
        "time": pa.array([10**15 + 997 * r + draw.randrange(100) for r in range(ROWS)], pa.int64()),
        "f32": pa.array(some(draw.random, 0.0), pa.float32()),
        "f64": pa.array(some(lambda: draw.gauss(0, 1), 0.3), pa.float64()),
        "word": pa.array(some(lambda: draw.choice(words), 0.05), pa.string()),
        "text": pa.array(some(lambda: "x" * draw.randrange(30) + str(draw.random()), 0.0), pa.string()),
    })


def cases():
    delta = {"i32": "DELTA_BINARY_PACKED", "few": "DELTA_BINARY_PACKED", "time": "DELTA_BINARY_PACKED",
             "f32": "BYTE_STREAM_SPLIT", "f64": "BYTE_STREAM_SPLIT", "word": "DELTA_BYTE_ARRAY",
             "text": "DELTA_LENGTH_BYTE_ARRAY"}
    for compression in ("none", "snappy", "gzip", "zstd", "lz4"):
        for page in ("1.0", "2.0"):
            for encoding in (dict(use_dictionary=True), dict(use_dictionary=False),
                             dict(use_dictionary=False, column_encoding=delta)):
                yield dict(compression=compression, data_page_version=page, row_group_size=12345, **encoding)


def same(ours, theirs):
    return ours == theirs or (isinstance(ours, float) and math.isnan(ours) and math.isnan(theirs))


def check_read(program, folder):
    import pyarrow.parquet

    records = table()
    for number, options in enumerate(cases()):
        source = folder / f"case-{number}.parquet"
        pyarrow.parquet.write_table(records, source, **options)
        lockstep(program, "data", "convert", source, "--to", "parquet", "--out", folder / "ours")
        ours = pyarrow.parquet.read_table(folder / "ours" / source.name, page_checksum_verification=True)
        for name in records.column_names:
            found, expected = ours[name].to_pylist(), records[name].to_pylist()
            assert len(found) == len(expected) and all(map(same, found, expected)), f"{options}: column {name} differs"


def main():
    python = os.environ.get("LOCKSTEP_PEERS_PYTHON")
    if python and "again" not in sys.argv:
        os.execv(python, [python, __file__, sys.argv[1], "again"])
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        print("SKIPPED: the Python of the peers has no pyarrow")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        check_generated(sys.argv[1], pathlib.Path(folder))
        check_read(sys.argv[1], pathlib.Path(folder))


if __name__ == "__main__":
    main()
