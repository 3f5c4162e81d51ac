// Blocks with every type of column, and blocks as text: for the tests of formats.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>

#include "data/format/table_writer.h"
#include "data/shards/formats.h"
#include "data/shards/shard_set.h"

namespace lockstep {

// Columns x (f64, some missing), n (i64), k (i32), f (f32), u (u8), name (bytes, some missing), pair (two f32
// per record) and list (a varying number of i32).
inline ColumnBlock mixed_block(int64_t records, bool flat = false) {
  ColumnBlock block;
  std::vector<BlockField> fields{{"x", ValueType::kF64, 1}, {"n", ValueType::kI64, 1},
                                 {"k", ValueType::kI32, 1}, {"f", ValueType::kF32, 1},
                                 {"u", ValueType::kU8, 1},  {"name", ValueType::kBytes, 1}};
  if (!flat) fields.push_back({"pair", ValueType::kF32, 2});
  if (!flat) fields.push_back({"list", ValueType::kI32, kVarying});
  block.reset(fields);
  auto heap = std::make_shared<std::string>();
  heap->reserve(static_cast<size_t>(records) * 16);
  block.column("x").missing.resize(static_cast<size_t>(records));
  block.column("name").missing.resize(static_cast<size_t>(records));
  for (int64_t r = 0; r < records; ++r) {
    const bool no_x = r % 7 == 3;
    block.column("x").as<double>().push_back(no_x ? 0.0 : std::sqrt(static_cast<double>(r)));
    block.column("x").missing[static_cast<size_t>(r)] = no_x;
    block.column("n").as<int64_t>().push_back(r * r - 100);
    block.column("k").as<int32_t>().push_back(static_cast<int32_t>(r % 5) - 2);
    block.column("f").as<float>().push_back(static_cast<float>(r) / 3);
    block.column("u").as<uint8_t>().push_back(static_cast<uint8_t>(r));
    const bool no_name = r % 11 == 5;
    const size_t at = heap->size();
    if (!no_name) *heap += fmt::format("k{}", r * 31 % 97);
    block.column("name").as<std::string_view>().emplace_back(heap->data() + at, heap->size() - at);
    block.column("name").missing[static_cast<size_t>(r)] = no_name;
    if (flat) continue;
    for (int i = 0; i < 2; ++i) block.column("pair").as<float>().push_back(static_cast<float>(r + i));
    auto& list = block.column("list").as<int32_t>();
    for (int64_t i = 0; i < r % 4; ++i) list.push_back(static_cast<int32_t>(r + i));
    block.column("list").ends.push_back(static_cast<int64_t>(list.size()));
  }
  block.records = records;
  block.keep.push_back(std::move(heap));
  return block;
}

inline std::string written_file(std::string_view format, const ColumnBlock& block,
                                Codec compression = Codec::kZstd) {
  std::string text;
  const auto writer = make_table_writer(format, block.fields(), {.compression = compression});
  writer->append(block, text);
  writer->finish(text);
  return text;
}

// One line per record.
inline std::string printed(const ColumnBlock& block, int64_t first, int64_t count) {
  std::string text;
  for (auto r = static_cast<size_t>(first); r < static_cast<size_t>(first + count); ++r) {
    for (const BlockColumn& column : block.columns) {
      const bool varying = column.width == kVarying;
      const size_t begin = !varying ? r * static_cast<size_t>(column.width)
                           : r == 0 ? 0
                                    : static_cast<size_t>(column.ends[r - 1]);
      const size_t end =
          varying ? static_cast<size_t>(column.ends[r]) : begin + static_cast<size_t>(column.width);
      text += column.is_missing(r) ? "-" : "";
      for (size_t i = begin; i < end; ++i)
        std::visit([&](const auto& values) { text += fmt::format("{};", values[i]); }, column.values);
      text += ' ';
    }
    text += '\n';
  }
  return text;
}

inline std::string printed(const ShardSet& set, int64_t first, int64_t count) {
  BlockScratch scratch;
  StageCounters counters;
  set.load(first, count, scratch, counters);
  check_block(scratch.block);
  return printed(scratch.block, 0, count);
}

}  // namespace lockstep
