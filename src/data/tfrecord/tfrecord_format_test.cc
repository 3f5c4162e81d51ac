// TFRecord files of Examples as a format: typed columns, lists, crcs, any range of records, damage that is
// left out or refused by file and byte.
#include "data/tfrecord/tfrecord_format.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/proto_writer.h"
#include "data/bytes/tfrecord_frame.h"
#include "data/testing/test_shards.h"

namespace lockstep {
namespace {

using Texts = std::vector<std::string_view>;

ProtoWriter feature(const std::string& name, int kind, const std::string& list) {
  const ProtoWriter value = ProtoWriter().add_bytes(kind, list);
  return ProtoWriter().add_bytes(1, ProtoWriter().add_bytes(1, name).add_bytes(2, value.bytes()).bytes());
}

std::string ints(const std::string& name, const std::vector<int64_t>& values, bool packed = false) {
  ProtoWriter list;
  std::string varints;
  for (const int64_t value : values) {
    // Without its key, an int is a varint.
    varints += ProtoWriter().add_int(1, value).bytes().substr(1);
    if (!packed) list.add_int(1, value);
  }
  if (packed) list.add_bytes(1, varints);
  return feature(name, 3, list.bytes()).bytes();
}

std::string floats(const std::string& name, const std::vector<float>& values, bool packed = true) {
  ProtoWriter list;
  if (packed)
    list.add_bytes(1, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  else
    for (const float value : values) list.add_float(1, value);
  return feature(name, 2, list.bytes()).bytes();
}

std::string texts(const std::string& name, const std::vector<std::string>& values) {
  ProtoWriter list;
  for (const std::string& value : values) list.add_bytes(1, value);
  return feature(name, 1, list.bytes()).bytes();
}

std::string record(const std::string& features) {
  std::string out;
  append_tfrecord(ProtoWriter().add_bytes(1, features).bytes(), out);
  return out;
}

const std::vector<BlockField> kColumns{
    {"x", ValueType::kF32, 1}, {"n", ValueType::kI64, 1}, {"c", ValueType::kBytes, 1}};

std::string simple(int64_t i) {
  return record(floats("x", {static_cast<float>(i)}) + ints("n", {-i}) + texts("c", {fmt::format("c{}", i)}));
}

ShardSet set_of(const std::string& text, const FormatOptions& options = {kColumns}, double most_bad = 0) {
  return shard_of("tfrecord", "t.tfrecord", text, options, most_bad);
}

std::string error_of(const std::string& text, const FormatOptions& options = {kColumns}) {
  return error_of_shard("tfrecord", "t.tfrecord", text, options);
}

TEST(TfrecordFormat, ReadsTheWireEncodingByteForByte) {
  // a: int64 [1, -1] packed, f: float [0.5] packed, s: bytes ["h"].
  const std::string_view kContent(
      "\x0a\x31"
      "\x0a\x14\x0a\x01\x61\x12\x0f\x1a\x0d\x0a\x0b\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
      "\x0a\x0d\x0a\x01\x66\x12\x08\x12\x06\x0a\x04\x00\x00\x00\x3f"
      "\x0a\x0a\x0a\x01\x73\x12\x05\x0a\x03\x0a\x01\x68",
      51);
  std::string file;
  append_tfrecord(kContent, file);
  const ShardSet set = set_of(file, {});
  EXPECT_EQ(set.fields(),
            (std::vector<BlockField>{
                {"a", ValueType::kI64, 2}, {"f", ValueType::kF32, 1}, {"s", ValueType::kBytes, 1}}));
  const ColumnBlock& block = records_of(set, 0, 1);
  EXPECT_EQ(block.column("a").as<int64_t>(), (std::vector<int64_t>{1, -1}));
  EXPECT_EQ(block.column("f").as<float>(), (std::vector<float>{0.5f}));
  EXPECT_EQ(block.column("s").as<std::string_view>(), (Texts{"h"}));
}

TEST(TfrecordFormat, DecodesFeaturesInAnyOrderAndEncoding) {
  const ShardSet set =
      set_of(record(floats("x", {1.5f}) + ints("n", {3}) + texts("c", {"a"}) + ints("other", {1, 2})) +
             record(texts("c", {"b"}) + ints("n", {-4}, true)) +
             record(ints("n", {int64_t{1} << 40}) + floats("x", {2.25f}, false) + ints("c", {12})) +
             record(texts("x", {"7.5"}) + texts("n", {"8"}) + floats("c", {0.1f})));
  const ColumnBlock& block = records_of(set, 0, 4);
  EXPECT_EQ(block.column("x").as<float>(), (std::vector<float>{1.5f, 0, 2.25f, 7.5f}));
  EXPECT_EQ(block.column("x").missing, (std::vector<uint8_t>{0, 1, 0, 0}));
  EXPECT_EQ(block.column("n").as<int64_t>(), (std::vector<int64_t>{3, -4, int64_t{1} << 40, 8}));
  EXPECT_TRUE(block.column("n").missing.empty());
  EXPECT_EQ(block.column("c").as<std::string_view>(), (Texts{"a", "b", "12", "0.1"}));
  EXPECT_EQ(
      set.describe(1),
      fmt::format(
          "t.tfrecord record 1 at byte {}",
          record(floats("x", {1.5f}) + ints("n", {3}) + texts("c", {"a"}) + ints("other", {1, 2})).size()));
}

TEST(TfrecordFormat, ListsBecomeColumnsOfTheirLength) {
  const ShardSet set = set_of(record(floats("f", {1, 2, 3}) + ints("v", {1}) + texts("t", {"a", "b"})) +
                                  record(floats("f", {4, 5, 6}) + ints("v", {2, 3}) + texts("t", {"c", "d"})),
                              {});
  EXPECT_EQ(set.fields(),
            (std::vector<BlockField>{
                {"f", ValueType::kF32, 3}, {"v", ValueType::kI64, kVarying}, {"t", ValueType::kBytes, 2}}));
  const ColumnBlock& block = records_of(set, 0, 2);
  EXPECT_EQ(block.column("f").as<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(block.column("v").as<int64_t>(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(block.column("v").ends, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(block.column("t").as<std::string_view>(), (Texts{"a", "b", "c", "d"}));
}

TEST(TfrecordFormat, AnyRangeEqualsTheWhole) {
  const int64_t records = 5000;
  std::string text;
  for (int64_t i = 0; i < records; ++i) text += simple(i);
  const ShardSet set = set_of(text);
  ASSERT_EQ(set.manifest().records(), records);
  for (const int64_t first : {0, 1, 63, 4096, 4990}) {
    for (const int64_t count : {1, 10, 300}) {
      if (first + count > records) continue;
      const ColumnBlock& block = records_of(set, first, count);
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(block.column("x").as<float>()[static_cast<size_t>(i)], static_cast<float>(first + i));
        EXPECT_EQ(block.column("n").as<int64_t>()[static_cast<size_t>(i)], -(first + i));
        EXPECT_EQ(block.column("c").as<std::string_view>()[static_cast<size_t>(i)],
                  fmt::format("c{}", first + i));
      }
    }
  }
}

TEST(TfrecordFormat, DamageIsNamedByByte) {
  const std::string one = simple(1);
  const size_t second = one.size();
  std::string text = one + simple(2) + simple(3);
  std::string wrong = text;
  wrong[second + kTfrecordHeader + 3] ^= 1;
  EXPECT_EQ(
      error_of(wrong),
      fmt::format("t.tfrecord at byte {}: the record's crc is wrong; the file is damaged here", second));
  wrong = text;
  wrong[second] ^= 1;
  EXPECT_TRUE(error_of(wrong).starts_with(
      fmt::format("t.tfrecord at byte {}: the crc of the record's length", second)));
  EXPECT_TRUE(
      error_of(text.substr(0, text.size() - 1))
          .starts_with(fmt::format("t.tfrecord at byte {}: the file ends in the middle", 2 * second)));
  std::string other;
  append_tfrecord("\x0a\xff", other);
  EXPECT_TRUE(
      error_of(one + other)
          .starts_with(fmt::format("t.tfrecord at byte {}: the record is no tf.train.Example", second)));
  EXPECT_TRUE(error_of(record(ints("x", {1, 2}))).find("column 'x' has 2 values, but 1") !=
              std::string::npos);
  EXPECT_TRUE(error_of(record(ints("n", {1}) + ints("n", {1}))).find("'n' is there twice") !=
              std::string::npos);
  EXPECT_EQ(error_of(""), "t.tfrecord: the file has no records");
  EXPECT_TRUE(error_of("x,n\n1,2\n3,4\n5,6\n").starts_with("t.tfrecord at byte 0: the crc of the record's"));
}

TEST(TfrecordFormat, DamageCanBeLeftOutAndLosesNothingElse) {
  const FormatOptions skip{kColumns, {}, BadRecords::kSkip};
  std::string text;
  std::vector<size_t> begins;
  for (int64_t i = 0; i < 40; ++i) {
    begins.push_back(text.size());
    text += simple(i);
  }
  // Whatever byte is wrong, the records around it are as they were.
  for (size_t at = begins[20]; at < begins[21]; ++at) {
    std::string wrong = text;
    wrong[at] ^= 0x10;
    const ShardSet set = set_of(wrong, skip, 0.5);
    ASSERT_EQ(set.manifest().records(), 39) << at;
    ASSERT_EQ(set.bad_records().size(), 1u);
    const ColumnBlock& block = records_of(set, 0, 39);
    for (int64_t i = 0; i < 39; ++i)
      EXPECT_EQ(block.column("n").as<int64_t>()[static_cast<size_t>(i)], -(i < 20 ? i : i + 1));
  }
}

TEST(TfrecordFormat, ATruncatedShardLosesItsLastRecordOnly) {
  const std::string text = simple(1) + simple(2) + simple(3);
  const size_t each = simple(1).size();
  for (size_t length = each + 1; length < text.size(); ++length) {
    if (length % each == 0) continue;
    const ShardSet set = set_of(text.substr(0, length), {kColumns, {}, BadRecords::kSkip}, 0.5);
    EXPECT_EQ(set.manifest().records(), static_cast<int64_t>(length / each)) << length;
    EXPECT_TRUE(set.bad_records()[0].find("the file ends in the middle") != std::string::npos);
    EXPECT_EQ(records_of(set, 0, set.manifest().records()).column("n").as<int64_t>()[0], -1);
  }
}

TEST(TfrecordFormat, ALongRecordIsRefusedInLittleMemory) {
  const std::string text = simple(1) + record(texts("c", {std::string(3u << 20, 'z')})) + simple(2);
  const FormatOptions stop{kColumns, {{"longest_record", "65536"}}};
  EXPECT_EQ(error_of(text, stop), fmt::format("t.tfrecord at byte {}: the record is longer than "
                                              "the 65536 bytes that longest_record allows",
                                              simple(1).size()));
  EXPECT_EQ(error_of(text), "");
  const ShardSet set = set_of(text, {kColumns, {{"longest_record", "65536"}}, BadRecords::kSkip}, 0.5);
  EXPECT_EQ(records_of(set, 0, 2).column("n").as<int64_t>(), (std::vector<int64_t>{-1, -2}));
}

}  // namespace
}  // namespace lockstep
