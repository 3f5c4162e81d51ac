// JSON Lines: one object on each line, its members are the columns. Blank lines and a leading byte-order mark
// are passed over; lines may end in CRLF. null, and a member that is not there, are missing values; NaN,
// which Python writes, is one as well. Lists of one length are columns of that width, others vary; a list or
// an object that is wanted as bytes is given as its text.
//
// Settings: longest_record (bytes; 16777216 unless given).
#pragma once
#include <memory>

#include "data/format/format.h"

namespace lockstep {

std::unique_ptr<Format> make_jsonl_format(const FormatOptions& options);

}  // namespace lockstep
