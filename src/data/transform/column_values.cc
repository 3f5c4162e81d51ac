#include "data/transform/column_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "data/transform/transform.h"

namespace lockstep {

void numbers_of(const BlockColumn& column, std::vector<double>& out) {
  std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (std::is_same_v<T, std::string_view>)
          throw UserError("column '{}' holds text, not numbers", column.name);
        else
          out.assign(values.begin(), values.end());
      },
      column.values);
  for (size_t r = 0; r < column.missing.size(); ++r)
    if (column.missing[r] != 0) out[r] = std::numeric_limits<double>::quiet_NaN();
}

std::span<const double> numbers_in(const BlockColumn& column, std::vector<double>& room) {
  if (column.missing.empty() && column.type() == ValueType::kF64) return column.as<double>();
  numbers_of(column, room);
  return room;
}

void require_finite(const ColumnBlock& block) {
  for (const BlockColumn& column : block.columns)
    std::visit(
        [&](const auto& values) {
          using T = typename std::decay_t<decltype(values)>::value_type;
          if constexpr (std::is_floating_point_v<T>) {
            if (column.width != 1) return;
            const auto beyond = [](T value) { return std::fabs(value) > static_cast<T>(kLargestNumber); };
            int64_t found = 0;  // without a branch for each of them
            for (const T value : values) found += beyond(value) ? 1 : 0;
            if (found == 0) return;
            for (size_t r = 0; r < values.size(); ++r)
              if (beyond(values[r]) && !column.is_missing(r))
                throw BadValue(
                    r, fmt::format("column '{}' has {}, which is not a finite number of at most 1e30; "
                                   "write it as a missing value, or leave such records out with "
                                   "data.filter or data.errors.policy: skip",
                                   column.name, values[r]));
          }
        },
        column.values);
}

void mark_missing(BlockColumn& column, size_t record, size_t records) {
  if (column.missing.empty()) column.missing.resize(records);
  column.missing[record] = 1;
}

namespace {

template <typename Named>
void put(std::vector<Named>& list, Named item) {
  const auto same =
      std::find_if(list.begin(), list.end(), [&](const Named& other) { return other.name == item.name; });
  if (same == list.end())
    list.push_back(std::move(item));
  else
    *same = std::move(item);
}

}  // namespace

void put_field(std::vector<BlockField>& fields, BlockField field) { put(fields, std::move(field)); }

void put_column(ColumnBlock& block, BlockColumn column) {
  column.computed = true;
  put(block.columns, std::move(column));
}

}  // namespace lockstep
