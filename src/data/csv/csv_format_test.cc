// CSV as a format: typed columns, any range of records, bad records left out or refused by file, line and
// byte.
#include "data/csv/csv_format.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/format/value_text.h"
#include "data/shards/shard_set.h"
#include "data/shards/sidecar.h"

namespace lockstep {
namespace {

const std::vector<BlockField> kColumns{
    {"x", ValueType::kF64, 1}, {"n", ValueType::kI64, 1}, {"c", ValueType::kBytes, 1}};

ShardSet set_of(const std::string& text, const FormatOptions& options = {kColumns}, double most_bad = 0) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(open_text("t.csv", text));
  return ShardSet(make_csv_format(options), std::move(shards), {.most_bad = most_bad});
}

ColumnBlock read(const ShardSet& set, int64_t first, int64_t count) {
  // Views point into the scratch.
  thread_local BlockScratch scratch;
  StageCounters counters;
  set.load(first, count, scratch, counters);
  return scratch.block;
}

std::string error_of(const std::string& text, const FormatOptions& options = {kColumns}) {
  try {
    const ShardSet set = set_of(text, options);
    read(set, 0, set.manifest().records());
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(CsvFormat, DecodesTypedColumnsInAnyOrderOfTheHeader) {
  const ShardSet set = set_of("c,x,unused,n\na,1.5,?,3\r\n\n\"b \"\"q\"\",\n2\",NA,?,-4\n,\"7\",?,");
  const ColumnBlock block = read(set, 0, 3);
  EXPECT_EQ(block.column("x").as<double>(), (std::vector<double>{1.5, 0, 7}));
  EXPECT_EQ(block.column("x").missing, (std::vector<uint8_t>{0, 1, 0}));
  EXPECT_EQ(block.column("n").as<int64_t>(), (std::vector<int64_t>{3, -4, 0}));
  EXPECT_EQ(block.column("n").missing, (std::vector<uint8_t>{0, 0, 1}));
  EXPECT_EQ(block.column("c").as<std::string_view>(),
            (std::vector<std::string_view>{"a", "b \"q\",\n2", ""}));
  EXPECT_EQ(set.describe(2), "t.csv:6");
}

TEST(CsvFormat, AllColumnsAreBytesUnlessAsked) {
  const ShardSet set = set_of(
      "\xef\xbb\xbf"
      "a,b\n1,2\n",
      {});
  EXPECT_EQ(set.fields(),
            (std::vector<BlockField>{{"a", ValueType::kBytes, 1}, {"b", ValueType::kBytes, 1}}));
  EXPECT_EQ(read(set, 0, 1).column("b").as<std::string_view>()[0], "2");
}

TEST(CsvFormat, AnotherSeparator) {
  const ShardSet set = set_of("x;n;c\n1;2;a,b\n", {kColumns, {{"separator", ";"}}});
  EXPECT_EQ(read(set, 0, 1).column("c").as<std::string_view>()[0], "a,b");
  EXPECT_THROW(make_csv_format({{}, {{"seperator", ";"}}}), UserError);
}

TEST(CsvFormat, DelimitersAreRecognisedByTheHeader) {
  for (const std::string separator : {",", ";", "\t", "|"}) {
    std::string text = "x{0}\"n\"{0}c\n1.5{0}2{0}a\n3{0}4{0}\"b{0}\"\n";
    for (size_t at = text.find("{0}"); at != std::string::npos; at = text.find("{0}"))
      text.replace(at, 3, separator);
    const ShardSet set = set_of(text);
    const ColumnBlock block = read(set, 0, 2);
    EXPECT_EQ(block.column("x").as<double>(), (std::vector<double>{1.5, 3})) << separator;
    EXPECT_EQ(block.column("n").as<int64_t>(), (std::vector<int64_t>{2, 4})) << separator;
    EXPECT_EQ(block.column("c").as<std::string_view>()[1], "b" + separator);
  }
  // What stands in quotes does not count, nor do a few of another kind in names.
  EXPECT_EQ(set_of("\"a;b;c;d\",x\n1,2\n", {}).fields()[0].name, "a;b;c;d");
  EXPECT_EQ(set_of("amount, EUR;hour;y\n1;2;0\n", {}).fields()[0].name, "amount, EUR");
  // A table of one column has none.
  EXPECT_EQ(set_of("x\n1\n", {}).fields()[0].name, "x");
  EXPECT_TRUE(error_of("x;n;c\n1;2\n").find("quote fields that contain a semicolon") != std::string::npos);
}

TEST(CsvFormat, ANamedDelimiterMustBeInTheHeader) {
  EXPECT_EQ(error_of("x;n;c\n1;2;a\n", {kColumns, {{"separator", ","}}}),
            "t.csv:1: the header has no comma, which data.delimiter says fields end with; it has 2 times a "
            "semicolon");
  EXPECT_EQ(set_of("x\n1\n", {{{"x", ValueType::kF64, 1}}, {{"separator", ";"}}}).records(), 1);
}

TEST(CsvFormat, AByteOrderMarkIsPassedOverAlsoBeforeAQuote) {
  const ShardSet set = set_of("\xef\xbb\xbf\"x\",n,c\n1,2,a\n");
  EXPECT_EQ(read(set, 0, 1).column("x").as<double>()[0], 1);
  EXPECT_TRUE(error_of("\xef\xbb\xbf").starts_with("t.csv: the file is empty"));
}

TEST(CsvFormat, OtherEncodingsAreRefusedByName) {
  using namespace std::string_literals;
  EXPECT_EQ(error_of("\xff\xfex\0,\0n\0"s),
            "t.csv: the text is UTF-16LE, and must be UTF-8; convert it: iconv -f UTF-16LE -t UTF-8");
  EXPECT_TRUE(error_of("\xfe\xff\0x\0,"s).starts_with("t.csv: the text is UTF-16BE"));
  EXPECT_TRUE(error_of("x\0,\0n\0"s).starts_with("t.csv: the text is UTF-16LE"));
  EXPECT_TRUE(error_of("\0x\0,\0n"s).starts_with("t.csv: the text is UTF-16BE"));
  EXPECT_TRUE(error_of("\xff\xfe\0\0x\0\0\0"s).starts_with("t.csv: the text is UTF-32"));
}

TEST(CsvFormat, MissingValuesAreTheUsualOnesOrThoseOfTheJob) {
  const std::string usual = "x,n,c\nNone,N/A,a\n-,?,b\n NA ,#N/A,c\n1,2,d\n";
  const ColumnBlock block = read(set_of(usual), 0, 4);
  EXPECT_EQ(block.column("x").missing, (std::vector<uint8_t>{1, 1, 1, 0}));
  EXPECT_EQ(block.column("n").missing, (std::vector<uint8_t>{1, 1, 1, 0}));
  FormatOptions own{kColumns};
  own.missing = std::make_shared<const MissingTexts>(std::vector<std::string>{"-999", "unknown"});
  const ShardSet set = set_of("x,n,c\n-999,unknown,NA\n1,-999,b\n,,c\n", own);
  EXPECT_EQ(read(set, 0, 3).column("x").missing, (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(read(set, 0, 3).column("n").missing, (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_TRUE(error_of("x,n,c\nNA,1,a\n", own).starts_with("t.csv:2: column 'x' has 'NA', which is not a"));
  EXPECT_NE(set.fingerprint(), set_of("x,n,c\n-999,unknown,NA\n1,-999,b\n,,c\n").fingerprint());
}

std::string long_table(int64_t records) {
  std::string text = "x,n,c\n";
  for (int64_t i = 0; i < records; ++i)
    text += fmt::format("{}.25,{},{}\n", i, -i, i % 7 == 0 ? "\"quoted, \n\"\"text\"\"\"" : "plain");
  return text;
}

TEST(CsvFormat, AnyRangeEqualsTheWhole) {
  const int64_t records = 20000;
  const ShardSet set = set_of(long_table(records));
  ASSERT_EQ(set.manifest().records(), records);
  for (const int64_t first : {0, 1, 63, 4096, 19990}) {
    for (const int64_t count : {1, 10, 300}) {
      if (first + count > records) continue;
      const ColumnBlock block = read(set, first, count);
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(block.column("x").as<double>()[static_cast<size_t>(i)],
                  static_cast<double>(first + i) + 0.25);
        EXPECT_EQ(block.column("n").as<int64_t>()[static_cast<size_t>(i)], -(first + i));
        EXPECT_EQ(block.column("c").as<std::string_view>()[static_cast<size_t>(i)],
                  (first + i) % 7 == 0 ? "quoted, \n\"text\"" : "plain");
      }
    }
  }
}

TEST(CsvFormat, IndexesAreSmall) {
  const std::string text = long_table(20000);
  const auto shard = open_text("t.csv", text);
  const ShardIndex index = build_index(*make_csv_format({kColumns}), *shard, [](int64_t) {});
  EXPECT_LT(to_bytes(index).size(), text.size() / 100);
  EXPECT_EQ(parse_index(to_bytes(index)), index);
  std::string damaged = to_bytes(index);
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_THROW(parse_index(damaged), UserError);
  EXPECT_THROW(parse_index(to_bytes(index).substr(0, 200)), UserError);
}

TEST(CsvFormat, BadRecordsAreNamedByLineAndByte) {
  EXPECT_EQ(error_of("x,n,c\n1,2,a\n1,2\n"),
            "t.csv:3: 2 fields, but the header names 3 columns; quote fields that contain a comma or a new "
            "line (byte 12)");
  EXPECT_TRUE(
      error_of("x,n,c\nmany,2,a\n").starts_with("t.csv:2: column 'x' has 'many', which is not a number"));
  EXPECT_TRUE(
      error_of("x,n,c\n1,2.5,a\n").starts_with("t.csv:2: column 'n' has '2.5', which is not a whole"));
  EXPECT_TRUE(error_of("x,n,c\n1,2,a\xff\n").starts_with("t.csv:2: column 'c' is not valid UTF-8"));
  EXPECT_TRUE(error_of("x,n,c\n1,2,a\"b\"\n").starts_with("t.csv:2: a quote inside a field"));
  EXPECT_TRUE(error_of("x,n,c\n1,2,\"a\"b\n").starts_with("t.csv:2: text follows a closing quote"));
  EXPECT_TRUE(
      error_of("x,n,c\n1,2,a\n1,2,\"open\n").starts_with("t.csv:3: the quote that opens here is never"));
  EXPECT_TRUE(error_of("x,c\n1,2\n").starts_with("t.csv:1: there is no column 'n'"));
  EXPECT_TRUE(error_of("x,x\n").starts_with("t.csv:1: two columns are called 'x'"));
  EXPECT_TRUE(error_of("").starts_with("t.csv: the file is empty"));
  EXPECT_TRUE(error_of("x,n,c\n\n").starts_with("t.csv: the file has a header but no records"));
}

TEST(CsvFormat, BadRecordsCanBeLeftOut) {
  const std::string text = "x,n,c\n1,2,a\nmany,2,a\n3,2\n4,2,\xff\n5,2,a\n6,2,a\"\"\n7,2,b\n";
  const ShardSet set = set_of(text, {kColumns, {}, BadRecords::kSkip}, 0.6);
  EXPECT_EQ(set.manifest().records(), 3);
  EXPECT_EQ(read(set, 0, 3).column("x").as<double>(), (std::vector<double>{1, 5, 7}));
  const std::vector<std::string> bad = set.bad_records();
  ASSERT_EQ(bad.size(), 4u);
  EXPECT_TRUE(bad[0].starts_with("t.csv at byte 12: column 'x' has 'many'")) << bad[0];
  try {
    set_of(text, {kColumns, {}, BadRecords::kSkip}, 0.5);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("4 of 7 records cannot be used")) << error.what();
  }
}

// Two stray quotes far apart, also in a column that is not wanted: the lines between them are records.
TEST(CsvFormat, AStrayQuoteTakesOnlyItsLine) {
  for (const std::string stray : {"1,2,a\"b,u", "1,2,\"ab,u", "1,2,a,\"u", "1,2,a,u\"v"}) {
    std::string text = "x,n,c,unused\n";
    std::vector<double> expected;
    for (int i = 0; i < 3000; ++i) {
      if (i % 700 == 350) {
        text += stray + "\n";
        continue;
      }
      text += i % 5 == 0 ? fmt::format("{},7,\"two\nlines\",\"u\"\n", i) : fmt::format("{},7,c,u\n", i);
      expected.push_back(i);
    }
    const std::string error = error_of(text);
    EXPECT_TRUE(error.starts_with("t.csv:")) << stray << " " << error;
    const ShardSet set = set_of(text, {kColumns, {}, BadRecords::kSkip}, 0.5);
    EXPECT_EQ(set.bad_records().size(), 4u) << stray;
    ASSERT_EQ(set.manifest().records(), static_cast<int64_t>(expected.size())) << stray;
    EXPECT_EQ(read(set, 0, set.manifest().records()).column("x").as<double>(), expected) << stray;
    EXPECT_EQ(read(set, 340, 30).column("x").as<double>(),
              std::vector<double>(expected.begin() + 340, expected.begin() + 370));
  }
}

// On processors without AVX2.
TEST(CsvFormat, PortableLoopsGiveTheSame) {
  std::string text = "x,n,c\r\n";
  for (int r = 0; r < 1000; ++r)
    text += fmt::format("{},{},{}\n", r % 7 == 0 ? "NA" : fmt::format("{}", r / 8.0), r * 977 - 5000,
                        r % 5 == 0 ? "\"a \"\"b\"\", é\n\"" : "plain");
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(open_text("t.csv", text));
  const ShardSet portable(make_csv_format({kColumns}, portable_csv_loops()), std::move(shards));
  const ShardSet usual = set_of(text);
  ASSERT_EQ(portable.records(), 1000);
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 1000}, {333, 100}, {999, 1}}) {
    const ColumnBlock expected = read(usual, first, count);
    BlockScratch scratch;
    StageCounters counters;
    portable.load(first, count, scratch, counters);
    for (size_t c = 0; c < kColumns.size(); ++c) {
      EXPECT_EQ(scratch.block.columns[c].values, expected.columns[c].values);
      EXPECT_EQ(scratch.block.columns[c].missing, expected.columns[c].missing);
    }
  }
}

TEST(CsvFormat, ARecordWithoutEndIsRefusedInLittleMemory) {
  std::string text = "x,n,c\n1,2,a\n3,4,\"";
  text.append(static_cast<size_t>(18) << 20, 'z');
  EXPECT_TRUE(error_of(text + "\"\n5,6,b\n").starts_with("t.csv:3: a record of more than 16 MiB"));
  const ShardSet set = set_of(text + "\"\n5,6,b\n", {kColumns, {}, BadRecords::kSkip}, 0.5);
  EXPECT_EQ(read(set, 0, 2).column("n").as<int64_t>(), (std::vector<int64_t>{2, 6}));
}

// The quick path for plain digits must give what the standard library gives.
TEST(CsvFormat, NumbersAreReadExactly) {
  const std::vector<std::string> texts{"0",
                                       "-0",
                                       "1",
                                       "0.1",
                                       "123456.789",
                                       "-9.995",
                                       "9007199254740993",
                                       ".5",
                                       "5.",
                                       "1e5",
                                       "-1E-7",
                                       "+2",
                                       " 4 ",
                                       "90071992547409.93",
                                       "123456789012345678",
                                       "0.000000000000001",
                                       "3.14159265358979"};
  std::string all = "x,n,c\n";
  for (const std::string& text : texts) all += text + ",1,a\n";
  const ShardSet set = set_of(all, {kColumns});
  const ColumnBlock block = read(set, 0, std::ssize(texts));
  for (size_t r = 0; r < texts.size(); ++r) {
    const double expected = *parse_number(texts[r]), found = block.column("x").as<double>()[r];
    EXPECT_EQ(found, expected) << texts[r];
    EXPECT_EQ(std::signbit(found), std::signbit(expected)) << texts[r];
  }
  for (const char* text : {".", "1.2.3", "1e99", "abc", "--1", "1-"})
    EXPECT_NE(error_of(fmt::format("x,n,c\n{},1,a\n", text)), "") << text;
}

}  // namespace
}  // namespace lockstep
