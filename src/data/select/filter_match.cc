// Filters over decoded columns.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/format/csv_record.h"
#include "data/select/compare_values.h"
#include "data/select/filter.h"
#include "data/table_encoding.h"
#include "data/transform/transform.h"

namespace lockstep {
namespace {

using Kind = FilterNode::Kind;
using Marks = std::vector<uint8_t>;

// Calls take(row, number) for every number of a column that is not missing.
template <typename Take>
void for_each_number(const BlockColumn& column, size_t records, bool lenient, const Take& take) {
  const auto text = [&](size_t r, std::string_view value) {
    if (is_missing(value)) return;
    if (const auto whole = integer_of(value)) return take(r, ExactNumber::of(*whole));
    const auto number = parse_number(value);
    if (number) return take(r, ExactNumber{*number, {}});
    if (lenient) return;
    throw BadValue(r, fmt::format("column '{}' is '{}', which the filter compares with a number", column.name,
                                  value.substr(0, 40)));
  };
  std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        for (size_t r = 0; r < records; ++r) {
          if (column.is_missing(r)) continue;
          if constexpr (std::is_same_v<T, std::string_view>) {
            text(r, values[r]);
          } else if constexpr (std::is_floating_point_v<T>) {
            if (!std::isnan(values[r])) take(r, ExactNumber{static_cast<double>(values[r]), {}});
          } else {
            take(r, ExactNumber::of(static_cast<int64_t>(values[r])));
          }
        }
      },
      column.values);
}

// The same for texts; numbers by their text, so that a column means the same in every format.
template <typename Take>
void for_each_text(const BlockColumn& column, size_t records, const Take& take) {
  std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        for (size_t r = 0; r < records; ++r) {
          if (column.is_missing(r)) continue;
          if constexpr (std::is_same_v<T, std::string_view>) {
            if (!is_missing(values[r])) take(r, values[r]);
          } else {
            if constexpr (std::is_floating_point_v<T>)
              if (std::isnan(values[r])) continue;
            take(r, std::string_view(fmt::format("{}", values[r])));
          }
        }
      },
      column.values);
}

template <typename Value>
bool holds(Kind kind, const Value& value, const std::vector<ScalarValue>& others) {
  using Other = std::conditional_t<std::is_same_v<Value, ExactNumber>, ExactNumber, std::string>;
  if (kind != Kind::kIn) return compares(kind, order_of(value, std::get<Other>(others[0])));
  return std::any_of(others.begin(), others.end(),
                     [&](const ScalarValue& other) { return order_of(value, std::get<Other>(other)) == 0; });
}

class Matcher {
 public:
  Matcher(const ColumnBlock& block, bool lenient)
      : block_(block), records_(static_cast<size_t>(block.records)), lenient_(lenient) {}

  Marks operator()(const FilterNode& node) const {
    switch (node.kind) {
      case Kind::kAnd:
      case Kind::kOr: return joined(node);
      case Kind::kNot: {
        Marks marks = (*this)(node.parts[0]);
        for (uint8_t& mark : marks) mark ^= 1;
        return marks;
      }
      default: return tested(node);
    }
  }

 private:
  Marks joined(const FilterNode& node) const {
    Marks marks = (*this)(node.parts[0]);
    for (size_t i = 1; i < node.parts.size(); ++i) {
      const Marks part = (*this)(node.parts[i]);
      for (size_t r = 0; r < records_; ++r)
        marks[r] = node.kind == Kind::kAnd ? marks[r] & part[r] : marks[r] | part[r];
    }
    return marks;
  }

  Marks tested(const FilterNode& node) const {
    const BlockColumn& column = block_.column(node.column);
    if (column.width != 1)
      throw UserError("the filter asks for column '{}', which holds several values in a record", node.column);
    if (node.kind == Kind::kMissing) {
      Marks marks(records_, 1);
      for_each_text(column, records_, [&](size_t r, std::string_view) { marks[r] = 0; });
      return marks;
    }
    Marks marks(records_, 0);
    const auto mark = [&](size_t r, const auto& value) {
      marks[r] = holds(node.kind, value, node.values) ? 1 : 0;
    };
    if (std::holds_alternative<std::string>(node.values[0]))
      for_each_text(column, records_, mark);
    else
      for_each_number(column, records_, lenient_, mark);
    return marks;
  }

  const ColumnBlock& block_;
  size_t records_;
  bool lenient_;
};

}  // namespace

std::vector<uint8_t> Filter::matches(const ColumnBlock& block, bool lenient) const {
  return Matcher(block, lenient)(root_);
}

}  // namespace lockstep
