#include "fuzz/filter.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "data/select/filter.h"

namespace lockstep::testing {
namespace {

// Every column of the filter, by turns as whole numbers, as floats and as text.
ColumnBlock block_for(const Filter& filter) {
  ColumnBlock block;
  constexpr ValueType kTypes[] = {ValueType::kI64, ValueType::kF64, ValueType::kBytes};
  std::vector<BlockField> fields = filter.columns();
  for (size_t i = 0; i < fields.size(); ++i) fields[i].type = kTypes[i % 3];
  block.reset(fields);
  block.records = 3;
  for (BlockColumn& column : block.columns) {
    if (column.type() == ValueType::kI64) column.as<int64_t>() = {0, 7, -1};
    if (column.type() == ValueType::kF64) column.as<double>() = {0, 0.5, 1e300};
    if (column.type() == ValueType::kBytes) column.as<std::string_view>() = {"", "DE", "7"};
    column.missing = {0, 0, 1};
  }
  return block;
}

}  // namespace

bool check_filter(std::string_view text) {
  std::optional<Filter> filter;
  try {
    filter.emplace(text);
  } catch (const UserError&) {
    return false;
  }
  // Outside of the try: what was printed must be a filter.
  const Filter again(filter->text());
  LOCKSTEP_CHECK(again.text() == filter->text(), "prints as {} and then as {}", filter->text(), again.text());
  const ColumnBlock block = block_for(*filter);
  const std::vector<uint8_t> marks = filter->matches(block, true);
  LOCKSTEP_CHECK(marks == again.matches(block, true), "{} is not {}", text, filter->text());
  return true;
}

}  // namespace lockstep::testing
