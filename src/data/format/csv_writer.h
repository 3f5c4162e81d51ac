// Writes records as CSV that csv_format.h reads: a header line, then a line each, fields quoted where they
// have to be.
//
// Numbers are written exactly; one that is missing is an empty field. A text that is missing becomes an empty
// one: CSV has no other way to say it. Columns hold one value in a record. Text must be UTF-8, and numbers at
// most 1e30.
#pragma once
#include "data/format/table_writer.h"

namespace lockstep {

std::unique_ptr<TableWriter> make_csv_writer(const std::vector<BlockField>& fields,
                                             const TableWriterOptions& options);

}  // namespace lockstep
