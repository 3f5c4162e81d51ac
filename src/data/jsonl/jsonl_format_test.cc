// JSON Lines as a format: typed columns, lists, missing values, any range of records, bad records left out or
// refused by file, line and byte.
#include "data/jsonl/jsonl_format.h"

#include <gtest/gtest.h>

#include "data/testing/test_shards.h"

namespace lockstep {
namespace {

using Texts = std::vector<std::string_view>;

const std::vector<BlockField> kColumns{
    {"x", ValueType::kF64, 1}, {"n", ValueType::kI64, 1}, {"c", ValueType::kBytes, 1}};

ShardSet set_of(const std::string& text, const FormatOptions& options = {kColumns}, double most_bad = 0) {
  return shard_of("jsonl", "t.jsonl", text, options, most_bad);
}

std::string error_of(const std::string& text, const FormatOptions& options = {kColumns}) {
  return error_of_shard("jsonl", "t.jsonl", text, options);
}

TEST(JsonlFormat, DecodesTypedColumnsInAnyOrder) {
  const ShardSet set = set_of(
      "\xef\xbb\xbf{\"x\": 1.5, \"n\": 3, \"c\": \"a\", \"other\": [1, {\"x\": 2}]}\r\n"
      "\n"
      "  {\"c\" : \"q \\\"\\u00e9\\n\" , \"n\":-4,\"x\":null }\n"
      "{\"x\": \"7.25\", \"c\": true}\n"
      "{\"\\u0078\": NaN, \"n\": 9007199254740993, \"c\": 12.50}");
  const ColumnBlock& block = records_of(set, 0, 4);
  EXPECT_EQ(block.column("x").as<double>(), (std::vector<double>{1.5, 0, 7.25, 0}));
  EXPECT_EQ(block.column("x").missing, (std::vector<uint8_t>{0, 1, 0, 1}));
  EXPECT_EQ(block.column("n").as<int64_t>(), (std::vector<int64_t>{3, -4, 0, 9007199254740993}));
  EXPECT_EQ(block.column("n").missing, (std::vector<uint8_t>{0, 0, 1, 0}));
  EXPECT_EQ(block.column("c").as<std::string_view>(), (Texts{"a", "q \"\xc3\xa9\n", "1", "12.50"}));
  EXPECT_TRUE(block.column("c").missing.empty());
  EXPECT_EQ(set.describe(1), "t.jsonl:3");
}

TEST(JsonlFormat, DecodesListsAndNumbersOfEveryType) {
  const FormatOptions options{{{"fixed", ValueType::kF32, 3},
                               {"varying", ValueType::kI32, kVarying},
                               {"words", ValueType::kBytes, kVarying},
                               {"flag", ValueType::kU8, 1},
                               {"raw", ValueType::kBytes, 1}}};
  const ShardSet set = set_of(
      "{\"fixed\":[1,2.5,-3],\"varying\":[7,8],\"words\":[\"a\",\"b\\t\"],\"flag\":true,\"raw\":{\"k\": [1]} "
      "}\n"
      "{\"varying\":[],\"words\":null,\"flag\":0,\"raw\":[1, 2]}\n"
      "{\"fixed\":[4,5,6],\"varying\":[9],\"words\":[\"c\"],\"flag\":1,\"raw\":\"t\"}\n",
      options);
  const ColumnBlock& block = records_of(set, 0, 3);
  EXPECT_EQ(block.column("fixed").as<float>(), (std::vector<float>{1, 2.5, -3, 0, 0, 0, 4, 5, 6}));
  EXPECT_EQ(block.column("fixed").missing, (std::vector<uint8_t>{0, 1, 0}));
  EXPECT_EQ(block.column("varying").as<int32_t>(), (std::vector<int32_t>{7, 8, 9}));
  EXPECT_EQ(block.column("varying").ends, (std::vector<int64_t>{2, 2, 3}));
  EXPECT_TRUE(block.column("varying").missing.empty());
  EXPECT_EQ(block.column("words").as<std::string_view>(), (Texts{"a", "b\t", "c"}));
  EXPECT_EQ(block.column("words").missing, (std::vector<uint8_t>{0, 1, 0}));
  EXPECT_EQ(block.column("flag").as<uint8_t>(), (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(block.column("raw").as<std::string_view>(), (Texts{"{\"k\": [1]}", "[1, 2]", "t"}));
}

TEST(JsonlFormat, FindsColumnsAndTheirTypesByTheFirstRecords) {
  const ShardSet set = set_of(
      "{\"a\":1,\"id\":9007199254740993,\"s\":\"x\",\"b\":true,\"l\":[1,2],\"v\":[1],\"m\":1}\n"
      "{\"a\":2.5,\"id\":1,\"s\":\"y\",\"b\":false,\"l\":[3,4],\"v\":[],\"m\":\"one\",\"late\":null}\n",
      {});
  EXPECT_EQ(set.fields(), (std::vector<BlockField>{{"a", ValueType::kF64, 1},
                                                   {"id", ValueType::kI64, 1},
                                                   {"s", ValueType::kBytes, 1},
                                                   {"b", ValueType::kU8, 1},
                                                   {"l", ValueType::kF64, 2},
                                                   {"v", ValueType::kF64, kVarying},
                                                   {"m", ValueType::kBytes, 1},
                                                   {"late", ValueType::kBytes, 1}}));
  EXPECT_EQ(records_of(set, 0, 2).column("m").as<std::string_view>(), (Texts{"1", "one"}));
  EXPECT_THROW(make_jsonl_format({{}, {{"longest", "1"}}}), UserError);
}

std::string long_lines(int64_t records) {
  std::string text;
  for (int64_t i = 0; i < records; ++i) {
    // The order of the members changes now and then, and members come and go.
    text += i % 97 == 0 ? fmt::format("{{\"n\":{},\"x\":{}.25,\"c\":\"plain\"}}\n", -i, i)
                        : fmt::format("{{\"x\":{}.25,\"n\":{},\"c\":\"{}\"{}}}\n", i, -i,
                                      i % 7 == 0 ? "a\\\\\\n" : "plain", i % 5 == 0 ? ",\"more\":{}" : "");
    if (i % 50 == 0) text += "\n";
  }
  return text;
}

TEST(JsonlFormat, AnyRangeEqualsTheWhole) {
  const int64_t records = 20000;
  const ShardSet set = set_of(long_lines(records));
  ASSERT_EQ(set.manifest().records(), records);
  for (const int64_t first : {0, 1, 63, 4096, 19990}) {
    for (const int64_t count : {1, 10, 300}) {
      if (first + count > records) continue;
      const ColumnBlock& block = records_of(set, first, count);
      for (int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<size_t>(i);
        EXPECT_EQ(block.column("x").as<double>()[at], static_cast<double>(first + i) + 0.25);
        EXPECT_EQ(block.column("n").as<int64_t>()[at], -(first + i));
        const bool escaped = (first + i) % 7 == 0 && (first + i) % 97 != 0;
        EXPECT_EQ(block.column("c").as<std::string_view>()[at], escaped ? "a\\\n" : "plain");
      }
    }
  }
}

TEST(JsonlFormat, BadRecordsAreNamedByLineAndByte) {
  const std::string good = "{\"x\":1,\"n\":2,\"c\":\"a\"}\n";
  EXPECT_EQ(error_of(good + "{\"x\":\"many\"}\n"),
            "t.jsonl:2: column 'x' has 'many', which is not a number (of at most 1e30); list it under "
            "data.missing_values if it means a missing value, or name the column "
            "under columns.categorical (byte 22)");
  EXPECT_EQ(error_of(good + "{\"n\":2.5}\n"),
            "t.jsonl:2: column 'n' has '2.5', which is not a whole number (byte 22)");
  EXPECT_EQ(error_of(good + "{\"c\":\"\xff\"}\n"), "t.jsonl:2: the line is not valid UTF-8 (byte 22)");
  EXPECT_TRUE(error_of(good + "[1]\n").starts_with("t.jsonl:2: the line is not a JSON object"));
  EXPECT_TRUE(
      error_of(good + "{\"x\":1} {\"x\":2}\n").starts_with("t.jsonl:2: text follows the JSON object"));
  EXPECT_TRUE(error_of(good + "{\"x\":1\n").starts_with("t.jsonl:2: the line is not valid JSON"));
  EXPECT_TRUE(error_of(good + "{\"x\":01}\n").starts_with("t.jsonl:2: the line is not valid JSON"));
  EXPECT_TRUE(error_of(good + "{\"c\":\"a}\n").starts_with("t.jsonl:2: the line is not valid JSON"));
  EXPECT_TRUE(error_of(good + "{\"x\":nul}\n").starts_with("t.jsonl:2: "));
  EXPECT_TRUE(error_of(good + "{\"x\":1,\"x\":2}\n").starts_with("t.jsonl:2: 'x' is there twice"));
  EXPECT_TRUE(error_of(good + "{\"x\":[1]}\n").starts_with("t.jsonl:2: column 'x' is a list"));
  EXPECT_TRUE(error_of(good + "{\"x\":1e31}\n").starts_with("t.jsonl:2: column 'x' has '1e+31'"));
  EXPECT_EQ(error_of("\n"), "t.jsonl: the file has no records");
  const FormatOptions three{{{"l", ValueType::kF32, 3}}};
  EXPECT_TRUE(error_of("{\"l\":[1,2]}\n", three).starts_with("t.jsonl:1: column 'l' has 2 values, but 3"));
  EXPECT_TRUE(error_of("{\"l\":[1,null,2]}\n", three).starts_with("t.jsonl:1: null in a list"));
}

TEST(JsonlFormat, BadRecordsCanBeLeftOut) {
  const std::string text =
      "{\"x\":1}\n{\"x\":\"many\"}\n{\"x\":3\n{\"c\":\"\xff\"}\n{\"x\":5}\n{\"x\":6,\"x\":6}\n{\"x\":7}\n";
  const ShardSet set = set_of(text, {kColumns, {}, BadRecords::kSkip}, 0.6);
  EXPECT_EQ(set.manifest().records(), 3);
  EXPECT_EQ(records_of(set, 0, 3).column("x").as<double>(), (std::vector<double>{1, 5, 7}));
  const std::vector<std::string> bad = set.bad_records();
  ASSERT_EQ(bad.size(), 4u);
  EXPECT_TRUE(bad[0].starts_with("t.jsonl at byte 8: column 'x' has 'many'")) << bad[0];
  EXPECT_THROW(set_of(text, {kColumns, {}, BadRecords::kSkip}, 0.5), UserError);
}

TEST(JsonlFormat, ALineWithoutEndIsRefusedInLittleMemory) {
  const FormatOptions stop{kColumns, {{"longest_record", "4096"}}};
  const FormatOptions skip{kColumns, {{"longest_record", "4096"}}, BadRecords::kSkip};
  const std::string line = "{\"c\":\"" + std::string(4u << 20, 'z') + "\"}\n";
  const std::string text = "{\"n\":1}\n" + line + "{\"n\":2}\n";
  EXPECT_EQ(error_of(text, stop),
            "t.jsonl:2: the line is longer than the 4096 bytes that longest_record allows; is a line end "
            "missing? (byte 8)");
  EXPECT_EQ(error_of(text), "");
  const ShardSet set = set_of(text, skip, 0.5);
  EXPECT_EQ(records_of(set, 0, 2).column("n").as<int64_t>(), (std::vector<int64_t>{1, 2}));
  // The last line, without an end.
  EXPECT_EQ(set_of("{\"n\":1}\n" + line.substr(0, 1u << 20), skip, 0.5).manifest().records(), 1);
}

TEST(JsonlFormat, ATruncatedShardLosesItsLastRecordOnly) {
  const std::string text = "{\"x\":1,\"c\":\"a\"}\n{\"x\":2,\"c\":\"\\u00e9\"}\n{\"x\":3,\"c\":\"b\"}";
  for (size_t length = 17; length <= text.size(); ++length) {
    const ShardSet set = set_of(text.substr(0, length), {kColumns, {}, BadRecords::kSkip}, 0.5);
    const int64_t records = set.manifest().records();
    EXPECT_GE(records, 1);
    const std::vector<double> found = records_of(set, 0, records).column("x").as<double>();
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], static_cast<double>(i + 1)) << length;
  }
}

}  // namespace
}  // namespace lockstep
