#include "data/format/gathered_columns.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {
namespace {

size_t values_before(const BlockColumn& column, size_t records) {
  if (column.width != kVarying) return records * static_cast<size_t>(column.width);
  return records == 0 ? 0 : static_cast<size_t>(column.ends[records - 1]);
}

// Records [first, end) of one column at the end of another.
void append_records(const BlockColumn& from, size_t first, size_t end, size_t before, BlockColumn& to,
                    std::string* heap) {
  const size_t begin_value = values_before(from, first);
  const size_t end_value = values_before(from, end);
  if (!from.missing.empty()) {
    to.missing.resize(before);
    to.missing.insert(to.missing.end(), from.missing.begin() + static_cast<int64_t>(first),
                      from.missing.begin() + static_cast<int64_t>(end));
  } else if (!to.missing.empty()) {
    to.missing.resize(before + end - first);
  }
  if (from.width == kVarying) {
    const int64_t base = to.ends.empty() ? 0 : to.ends.back();
    for (size_t r = first; r < end; ++r)
      to.ends.push_back(base + from.ends[r] - static_cast<int64_t>(begin_value));
  }
  std::visit(
      [&](const auto& values) {
        using Values = std::decay_t<decltype(values)>;
        auto& out = std::get<Values>(to.values);
        if constexpr (std::is_same_v<Values, std::vector<std::string_view>>) {
          for (size_t i = begin_value; i < end_value; ++i) {
            const size_t at = heap->size();
            heap->append(values[i]);
            out.emplace_back(heap->data() + at, values[i].size());
          }
        } else {
          out.insert(out.end(), values.begin() + static_cast<int64_t>(begin_value),
                     values.begin() + static_cast<int64_t>(end_value));
        }
      },
      from.values);
}

size_t text_bytes(const BlockColumn& column, size_t first, size_t end) {
  const auto* texts = std::get_if<std::vector<std::string_view>>(&column.values);
  if (texts == nullptr) return 0;
  size_t bytes = 0;
  for (size_t i = values_before(column, first); i < values_before(column, end); ++i)
    bytes += (*texts)[i].size();
  return bytes;
}

// Views are made into the heap as it grows: all of its memory is there from the start.
void append_all(const ColumnBlock& from, size_t first, ColumnBlock& to) {
  const auto end = static_cast<size_t>(from.records);
  auto heap = std::make_shared<std::string>();
  size_t bytes = 0;
  for (const BlockColumn& column : from.columns) bytes += text_bytes(column, first, end);
  heap->reserve(bytes);
  for (size_t c = 0; c < from.columns.size(); ++c)
    append_records(from.columns[c], first, end, static_cast<size_t>(to.records), to.columns[c], heap.get());
  to.records += from.records - static_cast<int64_t>(first);
  if (bytes > 0) to.keep.push_back(std::move(heap));
}

}  // namespace

GatheredColumns::GatheredColumns(const std::vector<BlockField>& fields) : fields_(fields) {
  gathered_.reset(fields_);
}

int64_t GatheredColumns::bytes() const {
  size_t bytes = 0;
  for (const BlockColumn& column : gathered_.columns) {
    bytes += text_bytes(column, 0, records());
    bytes +=
        std::visit([](const auto& values) { return values.size() * std::min(sizeof(values[0]), size_t{8}); },
                   column.values);
  }
  return static_cast<int64_t>(bytes);
}

void GatheredColumns::append(const ColumnBlock& block) {
  if (block.fields() != fields_) throw UserError("the files to convert do not all have the same columns");
  append_all(block, 0, gathered_);
}

void GatheredColumns::drop(size_t count) {
  if (count == 0) return;
  ColumnBlock rest;
  rest.reset(fields_);
  append_all(gathered_, count, rest);
  gathered_ = std::move(rest);
}

}  // namespace lockstep
