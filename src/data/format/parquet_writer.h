// Writes tables as Parquet that every reader understands: row groups of 65536 records, pages of 8192 (data
// page version 1, with crc), dictionary encoding where a column repeats itself and PLAIN otherwise, snappy or
// zstd.
//
// Plain columns only. Byte strings that are all valid UTF-8 are marked as text.
#pragma once
#include "data/format/table_writer.h"

namespace lockstep {

std::unique_ptr<TableWriter> make_parquet_writer(const std::vector<BlockField>& fields,
                                                 const TableWriterOptions& options);

}  // namespace lockstep
