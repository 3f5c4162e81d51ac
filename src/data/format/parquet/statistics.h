// The statistics of a column chunk as bounds of its values.
//
// Only what holds for certain is taken. `min_value` and `max_value` count where the file says that the column
// has the order of its type; the older `min` and `max` only for signed numbers, since writers disagreed about
// the order of everything else. A NaN as a bound says nothing; NaN among the values counts as missing, so
// that floats may always miss. Bounds of texts may have been cut by the writer: they are bounds all the same.
// Decimals, unsigned 64-bit numbers, fixed-length bytes and lists have no bounds here.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "data/format/column_bounds.h"

namespace lockstep::parquet {

struct Leaf;

// As they stand in a file, each value in plain encoding.
struct Statistics {
  std::optional<std::string> min = {}, max = {};              // deprecated
  std::optional<std::string> min_value = {}, max_value = {};  // by the column's order
  std::optional<int64_t> nulls = {};
};

// `ordered`: the file says that the column has the order of its type. `rows`: of the row group.
ColumnBounds bounds_of(const Leaf& leaf, const Statistics& statistics, bool ordered, int64_t rows);

}  // namespace lockstep::parquet
