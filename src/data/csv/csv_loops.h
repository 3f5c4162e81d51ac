// The loops over the bytes of CSV texts: finding fields and lines, and reading plain numbers. For AVX2 (with
// AVX-512 the scan is 5 % faster and reading numbers 15 % slower), and for any processor.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep {

// Where fields and lines end, as a scan finds them.
struct CsvMarks {
  uint32_t* ends;   // room for one per byte and 16 more
  uint32_t* lines;  // for each line, how many of `ends` there are up to and including its own; as many
  size_t end_count = 0;
  size_t line_count = 0;
  bool quotes = false;
  bool open_quote = false;
  bool non_ascii = false;
};

// As many as stay near: what a loop over one column has fetched of a line is there for the next column.
inline constexpr size_t kCsvRows = 64;

// One column of up to kCsvRows records of a text.
struct CsvColumn {
  const char* text;        // 64 more bytes can be read behind it
  size_t size;             // of the text
  const uint32_t* marks;   // field k of the text lies between marks[k] and marks[k + 1], both excluded
  const uint32_t* fields;  // for each record, the k of its first field
  size_t records;
  size_t place;  // of the column in a line
  bool last;     // the line ends behind it, maybe with a CR
};

struct CsvLoops {
  // 64 bytes behind the text can be read.
  void (*scan)(const char* text, size_t size, char separator, CsvMarks& marks);
  // Plain numbers: with AVX2 those of up to 15 bytes beside a minus, which are digits, and a point before the
  // last where they are real. Others are listed in `left`, which has room for all records, and have to be
  // looked at one by one; returns how many.
  size_t (*reals)(const CsvColumn& column, double* out, uint32_t* left);
  size_t (*wholes)(const CsvColumn& column, int64_t* out, uint32_t* left);
};

const CsvLoops& csv_loops();  // those for this processor
const CsvLoops& portable_csv_loops();
const CsvLoops& avx2_csv_loops();

}  // namespace lockstep
