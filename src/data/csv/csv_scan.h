// CsvScan: what one look at a CSV text finds: where fields and lines end, with quoted separators and line
// ends passed over. 64 bytes at a time; everything else about CSV works on these positions.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "data/csv/csv_loops.h"

namespace lockstep {

// One line of a scanned text.
struct CsvLine {
  std::string_view text;           // the whole scanned text
  uint32_t begin = 0;              // of the line
  std::span<const uint32_t> ends;  // of its fields

  size_t fields() const { return ends.size(); }
  // As written, with its quotes; a CR before the line end is not part of it.
  std::string_view raw(size_t field) const;
  bool blank() const { return ends.size() == 1 && raw(0).empty(); }
};

class CsvScan {
 public:
  // The text begins at the beginning of a line, has fewer than 2^32 bytes, and 64 more bytes can be read
  // behind it. With `last`, a line at the end of the text that no line end closes is a line as well.
  void look(std::string_view text, char separator, bool last, const CsvLoops& loops = csv_loops());

  size_t lines() const { return found_.line_count; }
  CsvLine line(size_t line) const;
  // Behind the first lines: where the next one would begin.
  size_t end_of(size_t lines) const;
  bool quotes() const { return found_.quotes; }          // there is at least one
  bool open_quote() const { return found_.open_quote; }  // the text ends inside quotes
  bool non_ascii() const { return found_.non_ascii; }

  // The number of a line's first field among all fields of the text; field k lies between mark k and k + 1.
  uint32_t first_field(size_t line) const { return line == 0 ? 0 : found_.lines[line - 1]; }
  const uint32_t* marks() const { return marks_.get(); }

 private:
  std::string_view text_;
  // Every byte may end a field or a line; what is not used is never touched.
  std::unique_ptr<uint32_t[]> marks_, lines_;  // a mark stands before the text, then one at each field's end
  size_t room_ = 0;
  CsvMarks found_{};
};

}  // namespace lockstep
