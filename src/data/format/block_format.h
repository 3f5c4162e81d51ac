// Our own columnar files (.block) as a format: the target of `lockstep data convert`, and what a run reads
// fastest. Only the columns that are wanted are read; every chunk is checked against its hash.
//
// A chunk that is damaged takes its whole block with it where bad records are skipped: the records of a block
// are one to the disk.
#pragma once
#include <memory>

#include "data/format/format.h"

namespace lockstep {

std::unique_ptr<Format> make_block_format(const FormatOptions& options);

}  // namespace lockstep
