// CSV by RFC 4180: a header line that names the columns, fields that may be quoted, lines that end in LF or
// CRLF. Blank lines and a leading byte-order mark are passed over; UTF-16 is refused. Columns are found by
// name, so their order may differ between shards; a column without a wanted type is given as bytes.
//
// A record whose quotes do not belong where they are ends with its line where bad records are skipped: what
// follows is read as records again, not taken for a quoted text up to the next quote of the file.
//
// Numbers that are missing (data/format/missing_texts.h) are marked. Text must be UTF-8.
// Settings: separator (one character; unless given, the one of , ; tab and | that the header has most of).
#pragma once
#include <memory>

#include "data/csv/csv_loops.h"
#include "data/format/format.h"
#include "data/format/table_writer.h"

namespace lockstep {

std::unique_ptr<Format> make_csv_format(const FormatOptions& options);
std::unique_ptr<Format> make_csv_format(const FormatOptions& options, const CsvLoops& loops);

// Writes records as CSV that csv_format.h reads: a header line, then a line each, fields quoted where they
// have to be.
//
// Numbers are written exactly; one that is missing is an empty field. A text that is missing becomes an empty
// one: CSV has no other way to say it. Columns hold one value in a record. Text must be UTF-8, and numbers at
// most 1e30.
std::unique_ptr<TableWriter> make_csv_writer(const std::vector<BlockField>& fields,
                                             const TableWriterOptions& options);

}  // namespace lockstep
