#include "data/select/filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/select/filter_parser.h"

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

}  // namespace lockstep
