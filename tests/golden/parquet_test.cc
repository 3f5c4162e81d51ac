// Parquet files that pyarrow wrote (golden/parquet/make_parquet.py): every encoding, compression and page
// version of the subset gives the same records; what is outside is refused by name; damage is named and
// bounded.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "data/parquet/parquet_format.h"
#include "data/testing/test_blocks.h"

namespace lockstep {
namespace {

std::string golden(const std::string& name) {
  return read_file(std::string(LOCKSTEP_GOLDEN "/parquet/") + name + ".parquet");
}

ShardSet set_of(const std::string& bytes, const FormatOptions& options = {}, double most_bad = 0,
                const parquet::Limits& limits = {}) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(open_text("t.parquet", bytes));
  return ShardSet(make_parquet_format(options, limits), std::move(shards), {.most_bad = most_bad});
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Record r of make_parquet.py, as test_blocks.h prints it.
std::string record(int64_t r) {
  std::string text = fmt::format("{}; ", r % 3 == 0 ? 1 : 0);
  text += r % 7 == 3 ? "-0; " : fmt::format("{}; ", r % 5 - 2);
  text += fmt::format("{}; {}; {}; ", r * r - 100, 4294967295 - r, static_cast<double>(r) / 4);
  text += r % 11 == 5 ? "-0; " : fmt::format("{}; ", static_cast<double>(r) / 8);
  text += r % 13 == 1 ? "-; " : fmt::format("k{}é; ", r * 31 % 17);
  text += "-0; ";
  if (r % 9 == 4)
    text += "-";
  else
    for (int64_t i = 0; i < r % 4; ++i) text += fmt::format("{};", r + i);
  text += ' ';
  for (int64_t i = 0; i < r % 3; ++i) text += fmt::format("w{};", (r + i) % 5);
  return text + " \n";
}

std::string records(int64_t first, int64_t count) {
  std::string text;
  for (int64_t r = first; r < first + count; ++r) text += record(r);
  return text;
}

class ParquetGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(ParquetGolden, HoldsTheSameRecords) {
  const ShardSet set = set_of(golden(GetParam()));
  ASSERT_EQ(set.manifest().records(), 300);
  EXPECT_EQ(printed(set, 0, 300), records(0, 300));
}

TEST_P(ParquetGolden, AnyRangeEqualsTheWholeWithAndWithoutPagesInMemory) {
  for (const char* cache : {"0", "256"}) {
    const ShardSet set = set_of(golden(GetParam()), {{}, {{"page_cache", cache}}});
    for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
             {0, 1}, {299, 1}, {127, 2}, {17, 200}, {128, 128}, {19, 22}, {17, 200}})
      EXPECT_EQ(printed(set, first, count), records(first, count)) << cache << " " << first << " " << count;
  }
}

TEST_P(ParquetGolden, AFileThatIsCutWhileItIsReadIsAnError) {
  const std::string path = ::testing::TempDir() + "/cut_" + GetParam() + ".parquet";
  write_file(path, golden(GetParam()));
  const ShardSet set(make_parquet_format({{}, {{"page_cache", "0"}}}), {path},
                     {.index_folder = ::testing::TempDir()});
  EXPECT_EQ(printed(set, 100, 1), records(100, 1));
  std::filesystem::resize_file(path, 8);
  EXPECT_THROW(printed(set, 200, 1), UserError);
  std::filesystem::remove(path);
}

TEST_P(ParquetGolden, SelectedRecordsAreThoseOfTheWhole) {
  std::vector<uint64_t> kept(5);
  std::string expected;
  for (int64_t r = 0; r < 300; ++r)
    if ((r < 100 || r >= 190) && (r % 5 < 2 || (r > 40 && r < 60) || r > 270)) {
      kept[static_cast<size_t>(r / 64)] |= uint64_t{1} << r % 64;
      expected += record(r);
    }
  const ShardSet all = set_of(golden(GetParam()));
  const ShardSet set = all.select(std::make_shared<const RecordSet>(kept, 300), "some");
  EXPECT_EQ(printed(set, 0, set.records()), expected);
}

TEST_P(ParquetGolden, ATruncatedFileIsRefused) {
  const std::string bytes = golden(GetParam());
  for (size_t length = 0; length < bytes.size(); length += 97)
    EXPECT_THROW(set_of(bytes.substr(0, length)), UserError) << length;
}

// No flipped bit does worse than give other values or a named error; under the skipping policy the two agree.
TEST_P(ParquetGolden, DamageIsAnErrorThatNamesTheFile) {
  const std::string bytes = golden(GetParam());
  for (size_t at = 0; at < bytes.size(); at += 61) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    const std::string message = message_of([&] {
      const ShardSet set = set_of(damaged);
      const int64_t count = std::min<int64_t>(set.manifest().records(), 300);
      printed(set, 0, count);
    });
    EXPECT_TRUE(message == "no error" || holds(message, "t.parquet")) << at << ": " << message;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, ParquetGolden,
                         ::testing::Values("plain", "plain_crc", "dictionary", "dictionary_v2",
                                           "dictionary_v1", "snappy", "gzip", "zstd", "lz4_raw", "plain_v2",
                                           "one_page", "delta_v2", "delta_length"),
                         [](const auto& info) { return std::string(info.param); });

// Of a column without missing values, whose pages stay packed.
TEST(ParquetFiles, IndicesBeyondADictionaryAreNamed) {
  const std::string bytes = golden("dictionary");
  int64_t named = 0;
  for (size_t at = 0; at < bytes.size(); at += 5) {
    std::string damaged = bytes;
    damaged[at] = '\xff';
    const std::string message = message_of([&] {
      const ShardSet set = set_of(damaged, {.columns = {{"f32", ValueType::kF32}}});
      printed(set, 0, 300);
    });
    named += holds(message, "t.parquet") && holds(message, "refers to entry") ? 1 : 0;
  }
  EXPECT_GT(named, 0);
}

TEST(ParquetFiles, KnowTheirTypes) {
  const ShardSet set = set_of(golden("plain"));
  std::string types;
  for (const BlockField& field : set.fields())
    types += fmt::format("{} {}{}, ", field.name, name_of(field.type), field.width == kVarying ? "*" : "");
  EXPECT_EQ(types,
            "flag u8, i32 i32, i64 i64, u32 i64, f32 f32, f64 f64, text bytes, none i64, list i32*, words "
            "bytes*, ");
}

TEST(ParquetFiles, OnlyWantedColumnsAreRead) {
  const std::string bytes = golden("snappy");
  const ShardSet set = set_of(bytes, {{{"words", ValueType::kBytes, 1}, {"i32", ValueType::kF64, 1}}});
  BlockScratch scratch;
  StageCounters counters;
  set.load(100, 60, scratch, counters);
  ASSERT_EQ(scratch.block.columns.size(), 2u);
  EXPECT_EQ(scratch.block.columns[1].as<int32_t>()[0], 100 % 5 - 2);

  StageCounters all;
  set_of(bytes).load(100, 60, scratch, all);
  EXPECT_LT(counters.read().bytes * 3, all.read().bytes);
}

TEST(ParquetFiles, WhatIsOutsideTheSubsetIsPassedOverOrRefusedByName) {
  const std::string bytes = golden("refused");
  const ShardSet set = set_of(bytes, {{{"good", ValueType::kI64, 1}, {"cents", ValueType::kF64, 1}}});
  EXPECT_EQ(printed(set, 0, 3), "1; 12.34; \n2; -0; \n3; -0.01; \n");
  const auto refusal = [&](const char* column) {
    return message_of([&] { printed(set_of(bytes, {{{column, ValueType::kBytes, 1}}}), 0, 3); });
  };
  EXPECT_EQ(refusal("nested"),
            "t.parquet: column 'nested' is nested; write its parts as columns of their own (plain "
            "values, or lists of plain values)");
  EXPECT_TRUE(holds(refusal("deep"), "column 'deep' is nested"));
  EXPECT_EQ(refusal("stamp"),
            "t.parquet: column 'stamp' has 96-bit time stamps; write them as 64-bit ones (INT64)");
  EXPECT_TRUE(holds(refusal("money"), "column 'money' has decimals stored as bytes; write them as DOUBLE"));
  EXPECT_EQ(refusal("half"), "t.parquet: column 'half' has 16-bit floats; write them as FLOAT");
  EXPECT_TRUE(
      holds(refusal("holes"), "a list has a null among its values; fill these before the file is written"));
  EXPECT_EQ(message_of([] { set_of(golden("brotli")); }),
            "t.parquet: column 'good' is compressed with Brotli; write it with snappy, zstd, gzip, lz4_raw "
            "or without "
            "compression");
  EXPECT_EQ(refusal("god"), "t.parquet: there is no column 'god'; did you mean good?");
}

TEST(ParquetFiles, AWrongCrcLeavesOutThePageAndNothingElse) {
  std::string bytes = golden("plain_crc");
  // The only place where these values of i64 lie: the first page of the column.
  std::string value(16, '\0');
  for (int64_t r = 25; r < 27; ++r) {
    const int64_t number = r * r - 100;
    std::memcpy(value.data() + (r - 25) * 8, &number, 8);
  }
  const size_t at = bytes.find(value);
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  const std::string message = message_of([&] { printed(set_of(bytes), 0, 300); });
  EXPECT_TRUE(holds(message, "t.parquet at byte ") &&
              holds(message, "column 'i64' of row group 0: a page cannot be read: its crc is wrong"))
      << message;

  const ShardSet set = set_of(bytes, {{}, {}, BadRecords::kSkip}, 0.2);
  const int64_t left = set.manifest().records();
  const int64_t out = 300 - left;
  EXPECT_GE(out, 20);
  EXPECT_LE(out, 60);
  EXPECT_TRUE(printed(set, 0, left) == records(out, left));
  ASSERT_EQ(set.bad_records().size(), 1u);
  EXPECT_TRUE(holds(set.describe(left - 1), "record 299 (row group 2)")) << set.describe(left - 1);
  EXPECT_TRUE(holds(message_of([&] { set_of(bytes, {{}, {}, BadRecords::kSkip}, 0.01); }), "of 300 records"));
}

TEST(ParquetFiles, TextThatIsNotUtf8IsNamedOrLeftOut) {
  std::string bytes = golden("plain");
  const size_t at = bytes.find("k14é", bytes.find("k14é") + 1);  // the second: record 28 after 11
  ASSERT_NE(at, std::string::npos);
  bytes[at + 4] = 'x';
  const std::string message = message_of([&] { printed(set_of(bytes), 0, 300); });
  EXPECT_TRUE(holds(message, "column 'text' is not valid UTF-8")) << message;
  const ShardSet set = set_of(bytes, {{}, {}, BadRecords::kSkip}, 0.01);
  EXPECT_EQ(set.manifest().records(), 299);
}

TEST(ParquetFiles, LargerPagesThanAllowedAreRefusedBeforeMemoryIsTaken) {
  EXPECT_TRUE(
      holds(message_of([] { printed(set_of(golden("one_page"), {}, 0, {.page_bytes = 100}), 0, 300); }),
            "write smaller pages"));
  EXPECT_TRUE(
      holds(message_of([] { printed(set_of(golden("one_page"), {}, 0, {.page_values = 10}), 0, 300); }),
            "write smaller pages"));
}

TEST(ParquetFiles, SettingsAreChecked) {
  EXPECT_EQ(message_of([] {
              make_parquet_format({{}, {{"cache", "1"}}});
            }),
            "parquet has no setting 'cache'; it has page_cache");
  EXPECT_EQ(message_of([] {
              make_parquet_format({{}, {{"page_cache", "lots"}}});
            }),
            "the page_cache of parquet is 'lots'; give a number of MiB, such as 256");
}

TEST(ParquetFiles, OtherFilesAreNamed) {
  EXPECT_EQ(message_of([] { set_of("a,b\n1,2\n3,4\n5,6\n"); }),
            "t.parquet: not a Parquet file: it does not begin with PAR1");
  EXPECT_TRUE(holds(message_of([] { set_of("PAR1\xff\xff\xff\x7fPAR1"); }), "does not fit in the file"));
}

}  // namespace
}  // namespace lockstep
