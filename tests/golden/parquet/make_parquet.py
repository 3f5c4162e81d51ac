"""Writes the small Parquet files of this folder with pyarrow: one for every encoding, compression and page version
that Lockstep reads, all holding the same 300 records (of some, those columns that the encoding can hold), and some
that it refuses. Run again only to add a case:

    build/peers/bin/python tests/golden/parquet/make_parquet.py
"""
import datetime
import decimal
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = pathlib.Path(__file__).parent
ROWS = 300


def table():
    rows = range(ROWS)
    return pa.table({
        "flag": pa.array([r % 3 == 0 for r in rows], pa.bool_()),
        "i32": pa.array([None if r % 7 == 3 else r % 5 - 2 for r in rows], pa.int32()),
        "i64": pa.array([r * r - 100 for r in rows], pa.int64()),
        "u32": pa.array([4294967295 - r for r in rows], pa.uint32()),
        "f32": pa.array([r / 4 for r in rows], pa.float32()),
        "f64": pa.array([None if r % 11 == 5 else r / 8 for r in rows], pa.float64()),
        "text": pa.array([None if r % 13 == 1 else f"k{r * 31 % 17}é" for r in rows], pa.string()),
        "none": pa.array([None] * ROWS, pa.int64()),
        "list": pa.array([None if r % 9 == 4 else [r + i for i in range(r % 4)] for r in rows], pa.list_(pa.int32())),
        "words": pa.array([[f"w{(r + i) % 5}" for i in range(r % 3)] for r in rows], pa.list_(pa.string())),
    })


PLAIN = dict(use_dictionary=False, compression="none", row_group_size=128, data_page_size=200, write_batch_size=20,
             store_schema=False)
CASES = {
    "plain": {},
    "plain_crc": dict(write_page_checksum=True),
    "dictionary": dict(use_dictionary=True),
    "dictionary_v2": dict(use_dictionary=True, data_page_version="2.0", compression="zstd"),
    "dictionary_v1": dict(use_dictionary=True, version="1.0", compression="snappy"),
    "snappy": dict(compression="snappy"),
    "gzip": dict(compression="gzip"),
    "zstd": dict(compression="zstd"),
    "lz4_raw": dict(compression="lz4"),
    "plain_v2": dict(data_page_version="2.0", compression="snappy"),
    "one_page": dict(row_group_size=1000, data_page_size=1 << 20, use_dictionary=True, compression="snappy"),
    "delta_v2": dict(data_page_version="2.0", compression="zstd", column_encoding={
        "flag": "RLE", "i32": "DELTA_BINARY_PACKED", "i64": "DELTA_BINARY_PACKED", "u32": "DELTA_BINARY_PACKED",
        "text": "DELTA_BYTE_ARRAY", "list.list.element": "DELTA_BINARY_PACKED",
        "words.list.element": "DELTA_LENGTH_BYTE_ARRAY", "f32": "BYTE_STREAM_SPLIT", "f64": "BYTE_STREAM_SPLIT"}),
    "delta_length": dict(column_encoding={
        "text": "DELTA_LENGTH_BYTE_ARRAY", "words.list.element": "DELTA_BYTE_ARRAY", "i32": "BYTE_STREAM_SPLIT"}),
}


def main():
    for name, options in CASES.items():
        pq.write_table(table(), FOLDER / f"{name}.parquet", **{**PLAIN, **options})

    refused = pa.table({
        "good": pa.array([1, 2, 3], pa.int64()),
        "nested": pa.array([{"a": 1, "b": [1]}] * 3, pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int32()))])),
        "deep": pa.array([[[1]], [[2]], [[3]]], pa.list_(pa.list_(pa.int32()))),
        "stamp": pa.array([datetime.datetime(2025, 1, 1)] * 3, pa.timestamp("ns")),
        "money": pa.array([decimal.Decimal("12.34")] * 3, pa.decimal128(30, 2)),
        "cents": pa.array([decimal.Decimal("12.34"), None, decimal.Decimal("-0.01")], pa.decimal128(9, 2)),
        "half": pa.array([1.5, 2.5, 3.5], pa.float16()),
        "holes": pa.array([[1, None], [2], [3]], pa.list_(pa.int32())),
    })
    pq.write_table(refused, FOLDER / "refused.parquet", compression="none", use_dictionary=False,
                   use_deprecated_int96_timestamps=True, store_decimal_as_integer=True, store_schema=False)
    pq.write_table(refused.select(["good"]), FOLDER / "brotli.parquet", compression="brotli")


if __name__ == "__main__":
    main()
