// JSON Lines: one object on each line, its members are the columns. Blank lines and a leading byte-order mark
// are passed over; lines may end in CRLF. null, and a member that is not there, are missing values; NaN,
// which Python writes, is one as well. Lists of one length are columns of that width, others vary; a list or
// an object that is wanted as bytes is given as its text.
//
// Settings: longest_record (bytes; 16777216 unless given).
#pragma once
#include <memory>

#include "data/format/format.h"
#include "data/format/table_writer.h"

namespace lockstep {

std::unique_ptr<Format> make_jsonl_format(const FormatOptions& options);

// Writes records as JSON lines that jsonl_format.h reads: an object each, with a member for every column.
//
// Numbers are written exactly, missing values as null, several values as a list. NaN, which JSON does not
// have, becomes null as well; numbers of more than 1e30 are refused, and text that is not UTF-8.
std::unique_ptr<TableWriter> make_jsonl_writer(const std::vector<BlockField>& fields,
                                               const TableWriterOptions& options);

}  // namespace lockstep
