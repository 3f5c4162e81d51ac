#include "cli/data_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "data/shards/shard_set.h"

namespace lockstep {
namespace {

constexpr int64_t kMostValues = 16;
constexpr size_t kMostText = 200;

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) != 0x7f;
  });
}

std::string value_text(std::string_view text) {
  if (!is_printable(text)) return fmt::format("({} bytes)", text.size());
  if (text.size() <= kMostText) return fmt::format("\"{}\"", text);
  return fmt::format("\"{}...\" ({} bytes)", text.substr(0, kMostText), text.size());
}
template <typename T>
std::string value_text(T value) {
  return fmt::format("{}", value);
}

template <typename Value>
std::string values_text(int64_t count, const Value& value) {
  if (count == 1) return value(0);
  std::string text;
  for (int64_t i = 0; i < std::min(count, kMostValues); ++i) text += (i == 0 ? "" : " ") + value(i);
  return count > kMostValues ? fmt::format("{} ... ({} values)", text, count) : text;
}

// Of a block with one record.
std::string column_text(const BlockColumn& column) {
  if (column.is_missing(0)) return "(missing)";
  return std::visit(
      [](const auto& values) {
        return values_text(static_cast<int64_t>(values.size()),
                           [&](int64_t i) { return value_text(values[static_cast<size_t>(i)]); });
      },
      column.values);
}

}  // namespace

std::vector<std::string> column_lines(const Source& source, int64_t record) {
  std::vector<std::string> lines;
  if (source.files() == nullptr) return lines;
  BlockScratch scratch;
  StageCounters counters;
  source.files()->load(source.record_in_files(record), 1, scratch, counters);
  for (const BlockColumn& column : scratch.block.columns)
    lines.push_back(fmt::format("{} = {}", column.name, column_text(column)));
  return lines;
}

std::vector<std::string> made_lines(const Source& source, const Transforms& transforms, BlockPlace place) {
  std::vector<std::string> lines;
  if (source.files() == nullptr || transforms.size() < 2) return lines;
  BlockScratch scratch;
  StageCounters counters;
  place.first = source.record_in_files(place.first);
  source.files()->load(place.first, 1, scratch, counters);
  std::set<std::string> made;
  for (size_t i = 0; i + 1 < transforms.size(); ++i) {
    transforms[i]->apply(place, scratch.block);
    for (const std::string& name : transforms[i]->makes()) made.insert(name);
  }
  for (const BlockColumn& column : scratch.block.columns)
    if (made.contains(column.name)) lines.push_back(fmt::format("{} = {}", column.name, column_text(column)));
  return lines;
}

std::vector<std::string> input_lines(const Source& source, int64_t record, int64_t epoch) {
  Batch batch(source.columns(), 1);
  source.fill_in_epochs({&record, 1}, {&epoch, 1}, batch);
  std::vector<std::string> lines;
  for (size_t c = 0; c < batch.columns().size(); ++c) {
    const Column& column = batch.columns()[c];
    const std::string values = values_text(column.shape.numel(), [&](int64_t i) {
      const double value = read_element(column.dtype, batch.data(c), i);
      return column.dtype == DType::kF32 ? fmt::format("{}", static_cast<float>(value))
                                         : fmt::format("{}", value);
    });
    lines.push_back(fmt::format("{} = {}", column.name, values));
  }
  return lines;
}

}  // namespace lockstep
