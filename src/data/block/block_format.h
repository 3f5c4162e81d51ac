// Our own columnar files (.block) as a format: the target of `lockstep data convert`, and what a run reads
// fastest. Only the columns that are wanted are read; every chunk is checked against its hash.
//
// A chunk that is damaged takes its whole block with it where bad records are skipped: the records of a block
// are one to the disk.
#pragma once
#include <memory>

#include "data/format/format.h"
#include "data/format/table_writer.h"

namespace lockstep {

std::unique_ptr<Format> make_block_format(const FormatOptions& options);

// Writes records into our own columnar file: data/block/block_layout.h has the layout.

// Blocks of about 64 kB before compression: what a run reads at once (DataManifest::block_records).
std::unique_ptr<TableWriter> make_block_writer(const std::vector<BlockField>& fields,
                                               const TableWriterOptions& options);

}  // namespace lockstep
