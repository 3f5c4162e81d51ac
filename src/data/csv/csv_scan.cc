#include "data/csv/csv_scan.h"

#include <algorithm>
#include <limits>

namespace lockstep {

void CsvScan::look(std::string_view text, char separator, bool last, const CsvLoops& loops) {
  constexpr size_t kSlack = 32;
  if (room_ < text.size() + kSlack) {
    room_ = text.size() + kSlack;
    marks_ = std::make_unique_for_overwrite<uint32_t[]>(room_);
    lines_ = std::make_unique_for_overwrite<uint32_t[]>(room_);
    marks_[0] = std::numeric_limits<uint32_t>::max();  // the first field begins one behind it
  }
  text_ = text;
  found_ = {.ends = marks_.get() + 1, .lines = lines_.get()};
  loops.scan(text.data(), text.size(), separator, found_);
  if (!last || found_.open_quote || end_of(lines()) == text.size()) return;
  found_.ends[found_.end_count++] = static_cast<uint32_t>(text.size());
  found_.lines[found_.line_count++] = static_cast<uint32_t>(found_.end_count);
}

CsvLine CsvScan::line(size_t line) const {
  const uint32_t first = first_field(line);
  return {text_, marks_[first] + 1, {found_.ends + first, found_.lines[line] - first}};
}

size_t CsvScan::end_of(size_t lines) const {
  return lines == 0 ? 0 : std::min(marks_[first_field(lines)] + size_t{1}, text_.size());
}

std::string_view CsvLine::raw(size_t field) const {
  const size_t from = field == 0 ? begin : ends[field - 1] + size_t{1};
  size_t to = ends[field];
  if (field + 1 == ends.size() && to > from && text[to - 1] == '\r' && to < text.size()) --to;
  return text.substr(from, to - from);
}

}  // namespace lockstep
