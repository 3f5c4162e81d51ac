// Writes records into our own columnar file: data/format/block_layout.h has the layout.
#pragma once
#include "data/format/table_writer.h"

namespace lockstep {

// Blocks of about 64 kB before compression: what a run reads at once (Manifest::block_records).
std::unique_ptr<TableWriter> make_block_writer(const std::vector<BlockField>& fields,
                                               const TableWriterOptions& options);

}  // namespace lockstep
