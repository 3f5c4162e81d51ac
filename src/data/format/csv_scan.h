// What one look at a CSV text finds: where fields and lines end, with quoted separators and line ends passed
// over. 64 bytes at a time; everything else about CSV works on these positions.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep {

struct CsvScan {
  // Positions of the separators and line ends that are not in quotes.
  std::vector<uint32_t> ends;
  // For each line, how many entries of `ends` there are up to and including its own end.
  std::vector<uint32_t> lines;
  bool quotes = false;      // there is at least one
  bool open_quote = false;  // the text ends inside quotes
  bool non_ascii = false;
};

// The text begins at the beginning of a line, has fewer than 2^32 bytes, and 64 more bytes can be read behind
// it. With `last`, a line at the end of the text that no line end closes is a line as well.
void scan_csv(std::string_view text, char separator, bool last, CsvScan& scan);

}  // namespace lockstep
