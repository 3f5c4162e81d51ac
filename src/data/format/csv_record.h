// The fields of one CSV record found by scan_csv, and the values they hold.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/format/column_block.h"
#include "data/format/csv_scan.h"

namespace lockstep {

// One line of a scanned text.
struct CsvLine {
  std::string_view text;           // the whole scanned text
  uint32_t begin = 0;              // of the line
  std::span<const uint32_t> ends;  // of its fields
  bool quotes = false;             // it may hold some

  size_t fields() const { return ends.size(); }
  // As written, with its quotes; a CR before the line end is not part of it.
  std::string_view raw(size_t field) const;
  bool blank() const { return ends.size() == 1 && raw(0).empty(); }
};

CsvLine line_of(std::string_view text, const CsvScan& scan, size_t line);

// What is wrong with how the field is written; nullptr: nothing.
const char* problem_of(std::string_view raw);
// The content of a field that has no problem. `unescaped` is written where the text itself does not hold it.
std::string_view unquote(std::string_view raw, std::string& unescaped);

// The number that a field holds, the same as std::from_chars gives; nothing if it holds something else, or
// more than 1e30.
std::optional<double> number_of(std::string_view field);
std::optional<int64_t> integer_of(std::string_view field);

bool is_utf8(std::string_view text);

}  // namespace lockstep
