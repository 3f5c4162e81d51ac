// Writes records as JSON lines that jsonl_format.h reads: an object each, with a member for every column.
//
// Numbers are written exactly, missing values as null, several values as a list. NaN, which JSON does not
// have, becomes null as well; numbers of more than 1e30 are refused, and text that is not UTF-8.
#pragma once
#include "data/format/table_writer.h"

namespace lockstep {

std::unique_ptr<TableWriter> make_jsonl_writer(const std::vector<BlockField>& fields,
                                               const TableWriterOptions& options);

}  // namespace lockstep
