// Parquet as a format: the common subset, which is what table writers make.
//
//   columns       plain values and lists of plain values; what is nested deeper is refused, by name, when it
//   is
//                 asked for, and passed over otherwise
//   types         booleans, 32- and 64-bit integers (unsigned ones too), FLOAT, DOUBLE, byte arrays, decimals
//   in
//                 INT32 or INT64 (as f64); dates and times stay the integers they are
//   encodings     PLAIN, dictionary, RLE, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY,
//                 BYTE_STREAM_SPLIT; data pages of version 1 and 2, with crc where there is one
//   compression   none, snappy, zstd, gzip, lz4_raw
//
// Only the columns that are wanted are read. A page is unpacked once for all blocks it holds rows of, as long
// as the cache of pages holds it (a third of the source's memory, at most the setting `page_cache` in MiB):
// it pays to write pages or row groups of some ten thousand rows. A damaged page takes its rows with it where
// bad records are skipped, and no others.
#pragma once
#include <memory>

#include "data/format/format.h"
#include "data/format/table_writer.h"
#include "data/parquet/pages.h"

namespace lockstep {

std::unique_ptr<Format> make_parquet_format(const FormatOptions& options);
std::unique_ptr<Format> make_parquet_format(const FormatOptions& options, const parquet::Limits& limits);

// Writes tables as Parquet that every reader understands: row groups of 65536 records, pages of 8192 (data
// page version 1, with crc), dictionary encoding where a column repeats itself and PLAIN otherwise, snappy or
// zstd.
//
// Plain columns only. Byte strings that are all valid UTF-8 are marked as text.
std::unique_ptr<TableWriter> make_parquet_writer(const std::vector<BlockField>& fields,
                                                 const TableWriterOptions& options);

}  // namespace lockstep
