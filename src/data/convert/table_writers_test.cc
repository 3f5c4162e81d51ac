// What the writers of CSV, JSON lines and TFRecord write is read again as the same values, of every type.
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "data/shards/formats.h"
#include "data/testing/test_blocks.h"
#include "data/testing/test_shards.h"

namespace lockstep {
namespace {

// CSV has no bytes of their own type, and no way to tell a missing text from an empty one.
ColumnBlock block_for(const std::string& format) {
  ColumnBlock block = mixed_block(3000, format == "csv");
  if (format == "csv") block.column("name").missing.clear();
  return block;
}

std::vector<BlockField> wanted(const std::string& format, const ColumnBlock& block) {
  std::vector<BlockField> fields = block.fields();
  for (BlockField& field : fields)
    if (format == "csv" && field.type == ValueType::kU8) field.type = ValueType::kI32;
  return fields;
}

class TableWriters : public testing::TestWithParam<std::string> {};

TEST_P(TableWriters, EveryTypeIsReadAgain) {
  const ColumnBlock block = block_for(GetParam());
  const ShardSet set =
      shard_of(GetParam(), "t", written_file(GetParam(), block), {wanted(GetParam(), block)});
  ASSERT_EQ(set.manifest().records(), block.records);
  EXPECT_EQ(printed(set, 0, block.records), printed(block, 0, block.records));
}

TEST_P(TableWriters, TheSameRecordsInOtherPiecesAreTheSameBytes) {
  const ColumnBlock block = block_for(GetParam());
  const auto writer = make_table_writer(GetParam(), block.fields());
  std::string twice;
  writer->append(block, twice);
  writer->append(block, twice);
  writer->finish(twice);
  const ShardSet set = shard_of(GetParam(), "t", twice, {wanted(GetParam(), block)});
  ASSERT_EQ(set.manifest().records(), 2 * block.records);
  EXPECT_EQ(printed(set, block.records, block.records), printed(block, 0, block.records));
}

// Numbers at the edges of their types, bit by bit, and text with everything that has a meaning in the format.
TEST_P(TableWriters, NumbersAndTextAreExact) {
  const std::vector<double> numbers{
      0.0, -0.0, 0.1, 1.0 / 3, 1e30, -1e30, 5e-324, 1e-310, 2.5e-7, 3.0, 9007199254740993.0, 123456.789};
  const std::vector<int64_t> whole{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(),
                                   0, -1, 9007199254740993};
  const std::vector<std::string_view> texts{
      "",       " ",           "a,b", "\"",   "\"\"a\"",
      "a\nb",   "\r\n",        "NA",  "null", "\xc3\xa9\xf0\x9f\x98\x80",
      "\\n\\u", "\x01\x1f\x7f"};
  ColumnBlock block;
  block.reset({{"text, \"quoted\"", ValueType::kBytes, 1},
               {"x", ValueType::kF64, 1},
               {"f", ValueType::kF32, 1},
               {"n", ValueType::kI64, 1}});
  for (size_t r = 0; r < texts.size(); ++r) {
    block.columns[0].as<std::string_view>().push_back(texts[r]);
    block.columns[1].as<double>().push_back(numbers[r]);
    block.columns[2].as<float>().push_back(static_cast<float>(numbers[r] / 2));
    block.columns[3].as<int64_t>().push_back(whole[r % whole.size()]);
  }
  block.records = static_cast<int64_t>(texts.size());
  const ShardSet set = shard_of(GetParam(), "t", written_file(GetParam(), block), {block.fields()});
  ASSERT_EQ(set.manifest().records(), block.records);
  const ColumnBlock& read = records_of(set, 0, block.records);
  EXPECT_EQ(read.columns[0].as<std::string_view>(), texts);
  EXPECT_EQ(read.columns[3].as<int64_t>(), block.columns[3].as<int64_t>());
  for (size_t r = 0; r < texts.size(); ++r) {
    EXPECT_EQ(std::bit_cast<uint64_t>(read.columns[1].as<double>()[r]), std::bit_cast<uint64_t>(numbers[r]));
    EXPECT_EQ(std::bit_cast<uint32_t>(read.columns[2].as<float>()[r]),
              std::bit_cast<uint32_t>(static_cast<float>(numbers[r] / 2)));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, TableWriters, testing::Values("csv", "jsonl", "tfrecord"),
                         [](const auto& info) { return info.param; });

TEST(CsvWriter, ALineIsNeverBlank) {
  for (const ValueType type : {ValueType::kBytes, ValueType::kF64}) {
    ColumnBlock block;
    block.reset({{"only", type, 1}});
    std::visit([](auto& values) { values.resize(3); }, block.columns[0].values);
    if (type == ValueType::kF64) block.columns[0].missing = {1, 0, 1};
    block.records = 3;
    const ShardSet set = shard_of("csv", "t", written_file("csv", block), {block.fields()});
    ASSERT_EQ(set.manifest().records(), 3);
    EXPECT_EQ(printed(set, 0, 3), printed(block, 0, 3));
  }
}

TEST(TableWriters, WhatAFormatCannotHoldIsRefused) {
  const auto error_of = [](const std::string& format, const BlockField& field, auto value) {
    ColumnBlock block;
    try {
      block.reset({field});
      block.columns[0].as<decltype(value)>().push_back(value);
      block.records = 1;
      written_file(format, block);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string_view no_text = "\xff";
  const double infinite = std::numeric_limits<double>::infinity();
  for (const std::string format : {"csv", "jsonl", "tfrecord"})
    EXPECT_TRUE(
        error_of(format, {"x", ValueType::kF64, 1}, infinite).starts_with(format + " cannot hold inf"));
  for (const std::string format : {"csv", "jsonl"})
    EXPECT_EQ(error_of(format, {"t", ValueType::kBytes, 1}, no_text),
              format + " cannot hold a value of column 't': it is not UTF-8");
  EXPECT_TRUE(error_of("csv", {"l", ValueType::kI64, kVarying}, int64_t{1})
                  .starts_with("csv cannot hold column 'l'"));
  EXPECT_EQ(error_of("tfrecord", {"t", ValueType::kBytes, 1}, no_text), "no error");
}

}  // namespace
}  // namespace lockstep
