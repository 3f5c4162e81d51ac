// MissingTexts: which texts of a table mean that a value is missing. An empty one always does.
//
// A job may name its own instead of the usual ones (data.missing_values). Formats ask for them where a number
// is wanted, and mark the value; texts keep theirs, and whoever takes them as categories asks for those of
// their column.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/format/column_block.h"

namespace lockstep {

class MissingTexts {
 public:
  explicit MissingTexts(std::vector<std::string> texts);

  bool has(std::string_view text) const {
    return text.empty() || (begins_[static_cast<unsigned char>(text[0])] && listed(text));
  }
  // Where a number is wanted, spaces around it do not count.
  bool has_for_number(std::string_view text) const;
  // For fingerprints.
  const std::vector<std::string>& texts() const { return texts_; }
  // Those that are numbers, as -999: any number that equals one is missing, however it is written.
  const std::vector<double>& numbers() const { return numbers_; }

 private:
  bool listed(std::string_view text) const;

  std::vector<std::string> texts_;
  std::vector<double> numbers_;
  std::array<bool, 256> begins_{};  // by first byte, so that most texts are one look
};

// NA, N/A, n/a, #N/A, <NA>, NaN, nan, null, NULL, None, - and ?.
const MissingTexts& usual_missing_texts();
// Only an empty text.
const MissingTexts& no_missing_texts();

// Marks the numbers of a block that equal one of theirs as missing.
void mark_missing_numbers(const MissingTexts& texts, ColumnBlock& block);

// Those of the data that a column comes from.
inline const MissingTexts& missing_texts(const BlockColumn& column) {
  return column.missing_texts != nullptr ? *column.missing_texts : usual_missing_texts();
}

}  // namespace lockstep
