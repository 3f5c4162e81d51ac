// Blocks made by hand for the tests of transforms, and what becomes of them.
#pragma once
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/transform/transform.h"

namespace lockstep {

inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// Views into texts, which must outlive the block. NaN and nullopt are missing.
inline BlockColumn number_column(const std::string& name, const std::vector<double>& numbers) {
  BlockColumn column{name, 1, numbers};
  for (size_t r = 0; r < numbers.size(); ++r) {
    column.missing.push_back(numbers[r] != numbers[r] ? 1 : 0);
    if (column.missing[r] != 0) column.as<double>()[r] = 0;
  }
  return column;
}

inline BlockColumn text_column(const std::string& name,
                               const std::vector<std::optional<std::string_view>>& texts) {
  BlockColumn column{name, 1, std::vector<std::string_view>()};
  for (const auto& text : texts) {
    column.as<std::string_view>().push_back(text.value_or(""));
    column.missing.push_back(text ? 0 : 1);
  }
  return column;
}

inline ColumnBlock block_of(const std::vector<BlockColumn>& columns) {
  ColumnBlock block;
  block.records =
      static_cast<int64_t>(std::visit([](const auto& values) { return values.size(); }, columns[0].values));
  block.columns = columns;
  return block;
}

// Fits to the blocks as they come, one fit for each, if there is something to fit.
inline void fit_blocks(Transform& transform, const std::vector<ColumnBlock>& blocks) {
  auto all = transform.begin_fit();
  if (!all) return;
  for (const ColumnBlock& block : blocks) {
    auto fit = transform.begin_fit();
    fit->add(block);
    all->merge(*fit);
  }
  transform.finish_fit(*all);
}

// Fitted to the block itself, then applied to it.
inline ColumnBlock transformed(const TransformOptions& options, const std::vector<BlockColumn>& columns) {
  ColumnBlock block = block_of(columns);
  const auto transform = make_transform(options);
  const std::vector<BlockField> fields = transform->output(block.fields());
  fit_blocks(*transform, {block});
  transform->apply({}, block);
  check_block(block);
  for (size_t i = 0; i < fields.size(); ++i) {
    LOCKSTEP_CHECK(fields[i].name == block.columns[i].name, "{}", fields[i].name);
    LOCKSTEP_CHECK(fields[i].type == block.columns[i].type(), "{}", fields[i].name);
    LOCKSTEP_CHECK(fields[i].width == block.columns[i].width, "{}", fields[i].name);
  }
  return block;
}

// As text, with - for what is missing: "1 2.5 - 7".
inline std::string values_of(const ColumnBlock& block, std::string_view name) {
  const BlockColumn& column = block.column(name);
  std::string text;
  for (size_t r = 0; r < static_cast<size_t>(block.records); ++r) {
    const std::string value =
        column.is_missing(r)
            ? "-"
            : std::visit([&](const auto& values) { return fmt::format("{}", values[r]); }, column.values);
    text += (r == 0 ? "" : " ") + value;
  }
  return text;
}

// What a UserError or BadValue says; empty where nothing is thrown.
template <typename Function>
std::string problem_with(const Function& function) {
  try {
    function();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace lockstep
