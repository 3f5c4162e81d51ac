#include "data/format/column_block.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "base/error.h"
#include "base/nearest.h"

namespace lockstep {
namespace {

ColumnValues empty_values(ValueType type) {
  switch (type) {
    case ValueType::kU8: return std::vector<uint8_t>();
    case ValueType::kI32: return std::vector<int32_t>();
    case ValueType::kI64: return std::vector<int64_t>();
    case ValueType::kF32: return std::vector<float>();
    case ValueType::kF64: return std::vector<double>();
    case ValueType::kBytes: return std::vector<std::string_view>();
  }
  throw InternalError("no such type of values");
}

template <typename Named>
size_t find_name(const std::vector<Named>& columns, std::string_view name) {
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].name == name) return i;
  std::vector<std::string_view> known;
  for (const Named& column : columns) known.push_back(column.name);
  throw UserError("the data has no column '{}'; {}", name, suggestion(name, known));
}

}  // namespace

std::string_view name_of(ValueType type) {
  constexpr auto kNames = std::to_array<std::string_view>({"u8", "i32", "i64", "f32", "f64", "bytes"});
  return kNames[static_cast<size_t>(type)];
}

BlockColumn make_column(const BlockField& field) {
  return {field.name, field.width, empty_values(field.type)};
}

size_t ColumnBlock::index_of(std::string_view name) const { return find_name(columns, name); }

size_t index_of(const std::vector<BlockField>& fields, std::string_view name) {
  return find_name(fields, name);
}

std::vector<BlockField> ColumnBlock::fields() const {
  std::vector<BlockField> fields;
  for (const BlockColumn& column : columns) fields.push_back(column.field());
  return fields;
}

void ColumnBlock::reset(const std::vector<BlockField>& fields, const MissingTexts* missing) {
  constexpr size_t kMostSpare = 256;
  records = 0;
  keep.clear();
  // The last one is found first.
  for (; !columns.empty(); columns.pop_back()) spare_.push_back(std::move(columns.back().values));
  for (const BlockField& field : fields) {
    columns.push_back(make_column(field));
    columns.back().missing_texts = missing;
    const auto found = std::find_if(spare_.rbegin(), spare_.rend(), [&](const ColumnValues& values) {
      return values.index() == columns.back().values.index();
    });
    if (found == spare_.rend()) continue;
    std::visit([](auto& values) { values.clear(); }, *found);
    columns.back().values = std::move(*found);
    spare_.erase(std::next(found).base());
  }
  if (spare_.size() > kMostSpare) spare_.erase(spare_.begin(), spare_.end() - kMostSpare);
}

int64_t ColumnBlock::bytes() const {
  size_t bytes = 0;
  for (const BlockColumn& column : columns) {
    bytes += column.ends.size() * sizeof(int64_t) + column.missing.size();
    bytes += std::visit([](const auto& values) { return values.size() * sizeof(values[0]); }, column.values);
  }
  return static_cast<int64_t>(bytes);
}

void keep_records(const std::vector<uint8_t>& marked, ColumnBlock& block) {
  for (BlockColumn& column : block.columns)
    std::visit(
        [&](auto& values) {
          std::decay_t<decltype(values)> kept;
          std::vector<int64_t> ends;
          std::vector<uint8_t> missing;
          for (size_t r = 0; r < marked.size(); ++r) {
            if (marked[r] == 0) continue;
            const bool varying = column.width == kVarying;
            const int64_t from =
                !varying ? static_cast<int64_t>(r) * column.width : (r == 0 ? 0 : column.ends[r - 1]);
            const int64_t to = varying ? column.ends[r] : from + column.width;
            kept.insert(kept.end(), values.begin() + from, values.begin() + to);
            if (varying) ends.push_back(static_cast<int64_t>(kept.size()));
            if (!column.missing.empty()) missing.push_back(column.missing[r]);
          }
          values = std::move(kept);
          column.ends = std::move(ends);
          column.missing = std::move(missing);
        },
        column.values);
  block.records = std::count_if(marked.begin(), marked.end(), [](uint8_t mark) { return mark != 0; });
}

void check_block(const ColumnBlock& block) {
  const size_t records = static_cast<size_t>(block.records);
  for (const BlockColumn& column : block.columns) {
    const size_t held = std::visit([](const auto& values) { return values.size(); }, column.values);
    const bool varying = column.width == kVarying;
    LOCKSTEP_CHECK(!varying || column.ends.size() == records, "{} ends in column {} of {} records",
                   column.ends.size(), column.name, records);
    const size_t expected = !varying       ? records * static_cast<size_t>(column.width)
                            : records == 0 ? 0
                                           : static_cast<size_t>(column.ends.back());
    LOCKSTEP_CHECK(held == expected, "{} values in column {} of {} records", held, column.name, records);
    LOCKSTEP_CHECK(column.missing.empty() || column.missing.size() == records, "{} marks in column {}",
                   column.missing.size(), column.name);
  }
}

std::vector<size_t> choose_columns(const std::vector<BlockField>& held, const std::vector<BlockField>& wanted,
                                   const std::string& file) {
  std::vector<size_t> chosen;
  if (wanted.empty()) {
    chosen.resize(held.size());
    std::iota(chosen.begin(), chosen.end(), size_t{0});
    return chosen;
  }
  for (const BlockField& column : wanted) {
    const auto found = std::find_if(held.begin(), held.end(),
                                    [&](const BlockField& field) { return field.name == column.name; });
    if (found == held.end()) {
      std::vector<std::string_view> known;
      for (const BlockField& field : held) known.push_back(field.name);
      throw UserError("{}: there is no column '{}'; {}", file, column.name, suggestion(column.name, known));
    }
    if (column.type != ValueType::kBytes && found->type == ValueType::kBytes)
      throw UserError("{}: column '{}' holds text; name it as categorical, or write it as numbers", file,
                      column.name);
    chosen.push_back(static_cast<size_t>(found - held.begin()));
  }
  return chosen;
}

}  // namespace lockstep
