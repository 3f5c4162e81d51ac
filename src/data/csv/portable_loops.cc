// The loops over CSV for processors without AVX2: byte by byte, and no number is read here.
#include "data/csv/csv_loops.h"

namespace lockstep {
namespace {

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
