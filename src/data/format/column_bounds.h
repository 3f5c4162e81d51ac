// ColumnBounds: what is known of the values of a column in some records without reading them, such as the
// statistics of a Parquet row group. Bounds may be wider than the values; what is not known is left open.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

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

struct ColumnBounds {
  std::optional<ScalarValue> least, most;  // of the values that are there
  bool may_miss = true;                    // a value may be missing, or a number that is none
  bool may_hold = true;                    // a value may be there
};

}  // namespace lockstep
