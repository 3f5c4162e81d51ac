// Filter: which records of a table are used, as a job writes it:
//
//   amount > 0 and country in ('DE', 'FR') and label is not missing
//
// Comparisons (== != < <= > >=) of a column with a number or a text in single quotes, `in` and `not in` a
// list of these, `is missing`, `is not missing`; joined by not, and, or (which bind in this order) and
// parentheses. A column whose name is not plain stands in `backquotes`; a quote in a text is written twice.
// Texts are compared by their bytes. A comparison with a value that is missing is false, whatever it is.
//
// A pure function of the record: evaluated once for each and kept (data/select/kept_set.h).
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/format/column_block.h"

namespace lockstep {

// A number as it was written or stored; whole ones are also held exactly.
struct ExactNumber {
  double value = 0;
  std::optional<int64_t> whole = {};

  static ExactNumber of(int64_t whole) { return {static_cast<double>(whole), whole}; }
  bool operator==(const ExactNumber&) const = default;
};

// Texts are ordered by their bytes, unsigned.
using ScalarValue = std::variant<ExactNumber, std::string>;

struct FilterNode {
  enum class Kind : uint8_t {
    kAnd,
    kOr,
    kNot,
    kEqual,
    kUnequal,
    kLess,
    kAtMost,
    kMore,
    kAtLeast,
    kIn,
    kMissing
  };
  Kind kind = Kind::kAnd;
  std::vector<FilterNode> parts = {};    // of and, or, not
  std::string column = {};               // of all others
  std::vector<ScalarValue> values = {};  // of comparisons one, of `in` at least one; all of one type
};

class Filter {
 public:
  // Throws UserError that names the character at which the text cannot be understood.
  explicit Filter(std::string_view text);

  const FilterNode& root() const { return root_; }
  // The same for all ways to write it that differ in spaces, parentheses and spelling of numbers alone.
  std::string text() const;
  // What must be decoded: columns compared with numbers as f64, unless these are whole and no f64 holds them,
  // the others as bytes.
  std::vector<BlockField> columns() const;

  // One byte for each record of the block, 1 where it matches. The columns may come in any type. Throws
  // BadValue for a text that is compared with numbers and is none; if `lenient`, that counts as missing.
  std::vector<uint8_t> matches(const ColumnBlock& block, bool lenient = false) const;

 private:
  FilterNode root_;
};

// From the text of a filter to its tree.

// Throws UserError by the character, counted from 1.
FilterNode parse_filter(std::string_view text);

// How the values of filters are compared: whole numbers exactly, others as f64, texts by their bytes.

// Below, equal or above: -1, 0 or 1.
inline int order_of(const ExactNumber& a, const ExactNumber& b) {
  if (a.whole && b.whole) return *a.whole < *b.whole ? -1 : *a.whole > *b.whole ? 1 : 0;
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}
inline int order_of(std::string_view a, std::string_view b) {
  const int order = a.compare(b);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

inline bool compares(FilterNode::Kind kind, int order) {
  switch (kind) {
    case FilterNode::Kind::kEqual: return order == 0;
    case FilterNode::Kind::kUnequal: return order != 0;
    case FilterNode::Kind::kLess: return order < 0;
    case FilterNode::Kind::kAtMost: return order <= 0;
    case FilterNode::Kind::kMore: return order > 0;
    default: return order >= 0;
  }
}

}  // namespace lockstep
