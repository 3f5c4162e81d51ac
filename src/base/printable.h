// Text that others have chosen (names of files, columns, runs; what a file holds) as it may be shown on a
// terminal or in a page: nothing in it moves the cursor, changes colours or the direction of writing, or
// types for the user.
#pragma once
#include <streambuf>
#include <string>
#include <string_view>

namespace lockstep {

// One line: ends of lines and tabs are spaces, other control characters, those that turn the direction of
// text around, and bytes that are no UTF-8 are question marks.
std::string printable(std::string_view text);
// The same for several lines: their ends and tabs stay.
std::string printable_lines(std::string_view text);

// PrintableBuffer: passes on to another buffer what printable_lines makes of it. For std::cout where it shows
// on a terminal; what a program reads is never changed.
class PrintableBuffer : public std::streambuf {
 public:
  explicit PrintableBuffer(std::streambuf& to) : to_(to) {}

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

 private:
  // A character may come in several pieces.
  bool pass(std::string_view text);

  std::streambuf& to_;
  std::string waiting_;  // the beginning of one
};

}  // namespace lockstep
