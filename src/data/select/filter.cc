#include "data/select/filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "data/format/missing_texts.h"
#include "data/format/value_text.h"
#include "data/transform/table_encoding.h"
#include "data/transform/transform.h"

namespace lockstep {
namespace {

using Kind = FilterNode::Kind;

std::string in_quotes(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) out.append(c == quote ? 2 : 1, c);
  return out + quote;
}

std::string text_of(const ScalarValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return in_quotes(*text, '\'');
  const auto& number = std::get<ExactNumber>(value);
  return number.whole ? fmt::format("{}", *number.whole) : fmt::format("{}", number.value);
}

std::string text_of(const FilterNode& node) {
  constexpr std::array<std::string_view, 9> kSigns = {"", "", "", "==", "!=", "<", "<=", ">", ">="};
  if (node.kind == Kind::kNot) return "not " + text_of(node.parts[0]);
  if (node.kind == Kind::kAnd || node.kind == Kind::kOr) {
    std::vector<std::string> parts;
    for (const FilterNode& part : node.parts) parts.push_back(text_of(part));
    return fmt::format("({})", fmt::join(parts, node.kind == Kind::kAnd ? " and " : " or "));
  }
  const std::string column = in_quotes(node.column, '`');
  if (node.kind == Kind::kMissing) return column + " is missing";
  std::vector<std::string> values;
  for (const ScalarValue& value : node.values) values.push_back(text_of(value));
  if (node.kind == Kind::kIn) return fmt::format("{} in ({})", column, fmt::join(values, ", "));
  return fmt::format("{} {} {}", column, kSigns[static_cast<size_t>(node.kind)], values[0]);
}

// A column that is only asked whether it is missing may have any type.
struct ColumnUse {
  std::string name;
  bool numbers = false, texts = false;
  bool beyond_double = false;  // one of the numbers: those of the column must be taken as they are written
};

bool is_beyond_double(const ScalarValue& value) {
  constexpr int64_t kExact = int64_t{1} << 53;
  const auto* number = std::get_if<ExactNumber>(&value);
  return number != nullptr && number->whole && (*number->whole > kExact || *number->whole < -kExact);
}

void collect(const FilterNode& node, std::vector<ColumnUse>& uses) {
  for (const FilterNode& part : node.parts) collect(part, uses);
  if (!node.parts.empty()) return;
  auto use =
      std::find_if(uses.begin(), uses.end(), [&](const ColumnUse& u) { return u.name == node.column; });
  if (use == uses.end()) use = uses.insert(uses.end(), {node.column});
  if (node.values.empty()) return;
  const bool text = std::holds_alternative<std::string>(node.values[0]);
  use->texts = use->texts || text;
  use->numbers = use->numbers || !text;
  use->beyond_double =
      use->beyond_double || std::any_of(node.values.begin(), node.values.end(), is_beyond_double);
  if (use->texts && use->numbers)
    throw UserError("the filter compares column '{}' with numbers and with texts; use one of them",
                    node.column);
}

}  // namespace

Filter::Filter(std::string_view text) : root_(parse_filter(text)) { columns(); }

std::string Filter::text() const { return text_of(root_); }

std::vector<BlockField> Filter::columns() const {
  std::vector<ColumnUse> uses;
  collect(root_, uses);
  std::vector<BlockField> fields;
  for (const ColumnUse& use : uses)
    fields.push_back({use.name, use.numbers && !use.beyond_double ? ValueType::kF64 : ValueType::kBytes, 1});
  return fields;
}

namespace {

using Kind = FilterNode::Kind;
using Marks = std::vector<uint8_t>;

// Calls take(row, number) for every number of a column that is not missing.
template <typename Take>
void for_each_number(const BlockColumn& column, size_t records, bool lenient, const Take& take) {
  const MissingTexts& missing = missing_texts(column);
  const auto text = [&](size_t r, std::string_view value) {
    if (missing.has_for_number(value)) return;
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
  const MissingTexts& missing = missing_texts(column);
  std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        for (size_t r = 0; r < records; ++r) {
          if (column.is_missing(r)) continue;
          if constexpr (std::is_same_v<T, std::string_view>) {
            if (!missing.has(values[r])) take(r, values[r]);
          } else {
            if constexpr (std::is_floating_point_v<T>)
              if (std::isnan(values[r])) continue;
            take(r, std::string_view(category_text(values[r])));
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
