// CsvReader: the records of one CSV text by RFC 4180. Fields may be quoted, quotes inside are doubled, quoted
// fields may hold separators and line ends; lines end in LF or CRLF; blank lines and a leading byte-order
// mark are skipped.
//
// Every error is a UserError that begins with name:line.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class CsvReader {
 public:
  // The text must outlive the reader and every field it gives.
  CsvReader(std::string_view name, std::string_view text);

  // The fields of the next record, or false at the end. They are valid until the next call.
  bool next(std::vector<std::string_view>& fields);
  // The line on which the last record began, from 1.
  int64_t line() const { return record_line_; }

 private:
  std::string_view field();
  std::string_view quoted_field();
  // After a field: true when another one follows on this record.
  bool take_separator();
  bool at_line_end() const;
  void skip_line_end();
  [[noreturn]] void fail(int64_t line, std::string_view problem) const;

  std::string_view name_;
  std::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1;
  int64_t record_line_ = 0;
  // Quoted fields that held doubled quotes, of the current record; the views must not move when one is added.
  std::deque<std::string> unescaped_;
};

}  // namespace lockstep
