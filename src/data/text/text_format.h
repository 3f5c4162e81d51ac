// Text as records for next-token training, with a vocabulary of 256 and no tokenizer: record i holds the
// bytes [i T, i T + T + 1) of a shard. Columns: tokens i32[T], the first T of them, and targets i32[T], the
// same shifted by one. Bytes after the last whole record are left out. Where a record lies is arithmetic, so
// any range is one read, and an index holds nothing but a hash.
//
// Settings: seq (T).
#pragma once
#include <memory>

#include "data/format/format.h"

namespace lockstep {

std::unique_ptr<Format> make_text_format(const FormatOptions& options);

}  // namespace lockstep
