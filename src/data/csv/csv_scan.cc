#include "data/csv/csv_scan.h"

#include <algorithm>
#include <limits>

#include "data/csv/csv_loops.h"

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

namespace {

// For processors without AVX2: byte by byte, and no number is read here.
void scan(const char* text, size_t size, char separator, CsvMarks& marks) {
  bool inside = false;
  for (size_t at = 0; at < size; ++at) {
    const char c = text[at];
    marks.non_ascii = marks.non_ascii || static_cast<unsigned char>(c) >= 0x80;
    if (c == '"') {
      inside = !inside;
      marks.quotes = true;
    }
    if (inside || (c != separator && c != '\n')) continue;
    marks.ends[marks.end_count++] = static_cast<uint32_t>(at);
    if (c == '\n') marks.lines[marks.line_count++] = static_cast<uint32_t>(marks.end_count);
  }
  marks.open_quote = inside;
}

size_t leave_all(const CsvColumn& column, uint32_t* left) {
  for (size_t r = 0; r < column.records; ++r) left[r] = static_cast<uint32_t>(r);
  return column.records;
}

}  // namespace

const CsvLoops& portable_csv_loops() {
  static constexpr CsvLoops kLoops{
      scan, [](const CsvColumn& column, double*, uint32_t* left) { return leave_all(column, left); },
      [](const CsvColumn& column, int64_t*, uint32_t* left) { return leave_all(column, left); }};
  return kLoops;
}

const CsvLoops& csv_loops() {
  static const bool wide = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0;
  return wide ? avx2_csv_loops() : portable_csv_loops();
}

}  // namespace lockstep
