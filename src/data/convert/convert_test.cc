// Conversion keeps every value and every column, and never writes over a file.
#include "data/convert/convert.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/open/corpus.h"
#include "data/shards/formats.h"
#include "data/testing/test_blocks.h"
#include "data/tokens/tokens_format.h"

namespace lockstep {
namespace {

constexpr const char* kTable = "n,x,name,code\n1,0.5,a,007\n-2,,\"b, c\",12\n3,1e3,,5\n";

TEST(Convert, CsvToBlockAndOnToParquet) {
  const TestFolder folder;
  folder.write("in/t.csv", kTable);
  for (const auto& [source, to] :
       std::vector<std::pair<std::string, std::string>>{{"in", "block"}, {"block", "parquet"}}) {
    ConvertOptions options;
    options.files = {folder.path(source) + "/t.*"};
    options.to = to;
    options.folder = folder.path(to);
    options.text = {"code"};
    const ConvertReport report = convert_files(options);
    EXPECT_EQ(report.records, 3);
    ASSERT_EQ(report.files, std::vector<std::string>{folder.path(to + "/t." + to)});
    EXPECT_FALSE(std::filesystem::exists(report.files[0] + ".partial"));
    EXPECT_THROW(convert_files(options), UserError) << "it is there";
    const ShardSet set(make_format(to, {}), report.files, {});
    EXPECT_EQ(set.fields(), (std::vector<BlockField>{{"n", ValueType::kI64, 1},
                                                     {"x", ValueType::kF64, 1},
                                                     {"name", ValueType::kBytes, 1},
                                                     {"code", ValueType::kBytes, 1}}));
    EXPECT_EQ(printed(set, 0, 3), "1; 0.5; a; 007; \n-2; -0; b, c; 12; \n3; 1000; ; 5; \n");
  }
}

ConvertReport convert(const std::string& from, const std::string& to, const std::string& folder) {
  ConvertOptions options;
  options.files = {from};
  options.to = to;
  options.folder = folder;
  options.text = {"code"};
  return convert_files(options);
}

TEST(Convert, RecordsAreTheSameByAnyWay) {
  const TestFolder folder;
  std::string table = kTable;
  for (int i = 0; i < 5000; ++i)
    table += fmt::format("{},{},\"line {}\n\"\"é\"\"\",{:03}\n", i * 100003,
                         i % 7 == 0 ? "" : fmt::format("{}", i / 7.0), i, i % 1000);
  folder.write("t.csv", table);
  const auto records_of = [](const ConvertReport& report) {
    const ShardSet set(make_format("block", {}), report.files, {});
    return printed(set, 0, set.manifest().records());
  };
  const std::string expected = records_of(convert(folder.path("t.csv"), "block", folder.path("direct")));
  for (const std::string way : {"csv", "jsonl", "tfrecord", "parquet"}) {
    const ConvertReport there = convert(folder.path("t.csv"), way, folder.path(way));
    EXPECT_EQ(there.records, 5003);
    EXPECT_EQ(records_of(convert(there.files[0], "block", folder.path("from-" + way))), expected) << way;
  }
}

// What a file holds as text after a conversion to JSONL, where types can be seen.
std::string as_jsonl(const TestFolder& folder, const std::string& name, const std::string& text) {
  static int number = 0;
  folder.write(name, text);
  ConvertOptions options;
  options.files = {folder.path(name)};
  options.to = "jsonl";
  options.folder = folder.path(fmt::format("out{}", ++number));
  return read_file(convert_files(options).files[0]);
}

TEST(Convert, TextsBecomeNumbersOnlyWhereNothingIsLost) {
  const TestFolder folder;
  // Names that look like numbers, whole numbers beyond 64 bits, and whole ones beyond 2^53 beside others.
  EXPECT_EQ(as_jsonl(folder, "a.csv",
                     "zip,id,n,x,big\n01234,12345678901234567890,1,1,9007199254740993\n"
                     "99999,12345678901234567891,-2,2.5,0.5\n"),
            "{\"zip\":\"01234\",\"id\":\"12345678901234567890\",\"n\":1,\"x\":1.0,\"big\":"
            "\"9007199254740993\"}\n"
            "{\"zip\":\"99999\",\"id\":\"12345678901234567891\",\"n\":-2,\"x\":2.5,\"big\":\"0.5\"}\n");
  // Also where that shows after many records.
  std::string late = "n\n";
  for (int i = 0; i < 20000; ++i) late += "1\n";
  EXPECT_TRUE(as_jsonl(folder, "late.csv", late + "A\n").ends_with("{\"n\":\"1\"}\n{\"n\":\"A\"}\n"));
}

TEST(Convert, WholeNumbersAndLateColumnsOfJsonlStayWhatTheyAre) {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "{\"k\":3,\"t\":true}\n";
  const std::string late = "{\"k\":9007199254740993,\"t\":false,\"late\":1.5}\n";
  const std::string written = as_jsonl(folder, "k.jsonl", text + late);
  EXPECT_TRUE(written.starts_with("{\"k\":3,\"t\":1,\"late\":null}\n"));
  EXPECT_TRUE(written.ends_with("{\"k\":9007199254740993,\"t\":0,\"late\":1.5}\n"));
  EXPECT_EQ(as_jsonl(folder, "u.jsonl", "{\"u\":18446744073709551615}\n{\"u\":1}\n"),
            "{\"u\":\"18446744073709551615\"}\n{\"u\":\"1\"}\n");
}

TEST(Convert, ColumnsAreLeftOutOnlyWhereThatIsSaid) {
  const TestFolder folder;
  folder.write("in/a.csv", "x,y\n1,2\n");
  folder.write("in/b.csv", "x,y,z\n1,2,3\n");
  ConvertOptions options;
  options.files = {folder.path("in")};
  options.from = "csv";
  options.folder = folder.path("out");
  EXPECT_THROW(convert_files(options), UserError) << "z";
  options.without = {"z"};
  EXPECT_EQ(convert_files(options).records, 2);
  options.folder = folder.path("again");
  options.text = {"nope"};
  EXPECT_THROW(convert_files(options), UserError);
}

TEST(Convert, TextAndColumnsOfTextBecomeTokens) {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 400000; ++i) text += static_cast<char>(i * 7 % 251);
  folder.write("in/t.txt", text);
  folder.write("in/u.jsonl", "{\"text\":\"ab\\u00e9\",\"n\":1}\n{\"n\":2,\"text\":\"cdef\"}\n");
  ConvertOptions options;
  options.files = {folder.path("in/t.txt")};
  options.to = "tokens";
  options.folder = folder.path("out");
  EXPECT_EQ(convert_files(options).records, 1);
  const auto corpus = open_corpus({.seq = 100, .vocab = 256}, {folder.path("out/t.tokens")});
  const auto bytes = open_text_files({.seq = 100}, {folder.path("in/t.txt")});
  ASSERT_EQ(corpus->size(), 3999);
  ASSERT_EQ(bytes->size(), 3999);
  Batch found(corpus->columns(), 1), expected(bytes->columns(), 1);
  for (const int64_t record : {0, 1, 2000, 3998}) {
    corpus->fill(std::vector{record}, found);
    bytes->fill(std::vector{record}, expected);
    for (const char* column : {"tokens", "targets"})
      EXPECT_TRUE(std::ranges::equal(found.values<int32_t>(found.index_of(column)),
                                     expected.values<int32_t>(expected.index_of(column))));
  }

  options.files = {folder.path("in/u.jsonl")};
  EXPECT_THROW(convert_files(options), UserError) << "which column?";
  options.column = "text";
  EXPECT_EQ(convert_files(options).records, 2);
  EXPECT_EQ(read_file(folder.path("out/u.tokens")),
            token_file({{'a', 'b', 0xc3, 0xa9}, {'c', 'd', 'e', 'f'}}));
}

TEST(Convert, AFailureLeavesNothingBehind) {
  const TestFolder folder;
  folder.write("t.csv", kTable);
  ConvertOptions options;
  options.files = {folder.path("t.csv")};
  options.folder = folder.path("out");
  options.to = "blocks";
  EXPECT_THROW(convert_files(options), UserError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("out")));
  folder.write("t.unknown", kTable);
  options.files = {folder.path("t.unknown")};
  EXPECT_THROW(convert_files(options), UserError);
}

}  // namespace
}  // namespace lockstep
