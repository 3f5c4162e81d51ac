// Conversion keeps every value, chooses types by a sample, and never writes over a file.
#include "data/convert.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/corpus.h"
#include "data/format/test_blocks.h"
#include "data/format/token_writer.h"
#include "data/text.h"

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
