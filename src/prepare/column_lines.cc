#include "prepare/column_lines.h"

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr size_t kMostNamed = 8;

std::string left_out_text(const TableReport& report) {
  std::vector<std::string> columns;
  for (const LeftOutColumn& column : report.left_out)
    columns.push_back(fmt::format("{} ({})", column.name, column.reason));
  if (columns.size() <= kMostNamed) return fmt::format("{}", fmt::join(columns, ", "));
  const size_t more = columns.size() - kMostNamed;
  columns.resize(kMostNamed);
  return fmt::format("{} and {} more, which `lockstep data inspect` lists", fmt::join(columns, ", "), more);
}

}  // namespace

std::string column_line(const TableReport& report) {
  std::vector<std::string> parts;
  for (const ColumnRole role : {ColumnRole::kNumeric, ColumnRole::kCategorical, ColumnRole::kText,
                                ColumnRole::kWeight, ColumnRole::kTransformed})
    if (const int64_t count = report.count(role); count > 0)
      parts.push_back(fmt::format("{} {}", count, name_of(role)));
  parts.push_back(fmt::format("label {}", report.label));
  const std::string line = fmt::format("{}", fmt::join(parts, ", "));
  if (report.left_out.empty()) return line + "; none left out";
  return fmt::format("{}; left out: {}", line, left_out_text(report));
}

std::vector<std::string> column_notes(const TableReport& report) {
  std::vector<std::string> notes;
  for (const LeftOutColumn& column : report.left_out)
    notes.push_back(fmt::format("column '{}' is left out: {}{}{}", column.name, column.reason,
                                column.advice.empty() ? "" : "; ", column.advice));
  for (const UsedColumn& column : report.used)
    if (column.facts && column.facts->missing > 0)
      notes.push_back(fmt::format("column '{}' ({}): {}", column.field.name, name_of(column.role),
                                  facts_text(*column.facts)));
  return notes;
}

}  // namespace lockstep
