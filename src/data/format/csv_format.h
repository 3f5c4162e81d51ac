// CSV by RFC 4180: a header line that names the columns, fields that may be quoted, lines that end in LF or
// CRLF. Blank lines and a leading byte-order mark are passed over. Columns are found by name, so their order
// may differ between shards; a column without a wanted type is given as bytes.
//
// A record whose quotes do not belong where they are ends with its line where bad records are skipped: what
// follows is read as records again, not taken for a quoted text up to the next quote of the file.
//
// Numbers that are missing (nothing, NA, NaN, nan, null, NULL) are marked. Text must be UTF-8.
// Settings: separator (one character; "," unless given).
#pragma once
#include <memory>

#include "data/format/format.h"

namespace lockstep {

std::unique_ptr<Format> make_csv_format(const FormatOptions& options);

}  // namespace lockstep
