// What the first records say of a column: a few texts among numbers do not turn it into something else, and a
// column that is left out has a reason.
#include "data/table/column_sample.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/table/table.h"
#include "data/testing/test_blocks.h"

namespace lockstep {
namespace {

constexpr int kRows = 400;

std::string table_with(const std::function<std::string(int)>& value) {
  std::string text = "x,n,y\n";
  for (int i = 0; i < kRows; ++i) text += fmt::format("{},{},{}\n", value(i), i % 7, i % 3 == 0 ? 1 : 0);
  return text;
}

Table open(const std::string& text, TableOptions options = {}, const std::string& name = "t.csv") {
  options.encoding.label = "y";
  options.encoding.buckets = 100;
  return open_table(options, [&] {
    Shards shards;
    shards.push_back(open_text(name, text));
    return shards;
  });
}

std::string error_of(const std::string& text, const TableOptions& options = {}) {
  try {
    open(text, options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> numeric(const Table& table) {
  std::vector<std::string> names;
  for (const NumericColumn& column : table.encoding->encoding().numeric) names.push_back(column.name);
  return names;
}

// The case of a new user: one None among numbers made the column a text that hardly repeats, and it was gone.
TEST(ColumnSample, OneNoneInANumericColumnIsAMissingNumber) {
  const Table table =
      open(table_with([](int i) { return i == 17 ? std::string("None") : fmt::format("{}.5", i); }));
  EXPECT_EQ(numeric(table), (std::vector<std::string>{"x", "n"}));
  EXPECT_TRUE(table.encoding->encoding().numeric[0].missing_flag);
  EXPECT_TRUE(table.report.left_out.empty());
}

TEST(ColumnSample, AnyOtherTextInANumericColumnIsNamed) {
  const std::string text =
      table_with([](int i) { return i == 17 ? std::string("many") : fmt::format("{}.5", i); });
  EXPECT_EQ(
      error_of(text),
      fmt::format("t.csv:19: column 'x' has 'many', which is not a number (of at most 1e30); list it under "
                  "data.missing_values if it means a missing value, or name the column "
                  "under columns.categorical (byte {})",
                  text.find("many")));
  TableOptions skip;
  skip.bad = BadRecords::kSkip;
  skip.most_bad = 0.01;
  EXPECT_EQ(open(text, skip).source->size(), kRows - 1);
  TableOptions listed;
  listed.missing = std::make_shared<const MissingTexts>(std::vector<std::string>{"many"});
  EXPECT_TRUE(open(text, listed).encoding->encoding().numeric[0].missing_flag);
}

TEST(ColumnSample, NumbersWithADecimalCommaAreNamed) {
  std::string text = "x;y\n";
  for (int i = 0; i < 300; ++i) text += fmt::format("{},5;{}\n", i, i % 2);
  EXPECT_EQ(
      error_of(text),
      "t.csv:2: column 'x' has '0,5', which is not a number (of at most 1e30); write a point before the "
      "decimals, and no other separators (byte 4)");
}

TEST(ColumnSample, OneTextInTwentyIsNoAccident) {
  const auto texts_in = [](int every) {
    return table_with([=](int i) { return i % every == 0 ? std::string("x1") : fmt::format("{}", i % 9); });
  };
  EXPECT_NE(error_of(texts_in(20)), "");
  const Table table = open(texts_in(19));
  EXPECT_EQ(table.encoding->encoding().categorical, (std::vector<std::string>{"x"}));
}

TEST(ColumnSample, AColumnThatIsLeftOutHasAReason) {
  std::string text = "id,empty,kind,x,dropped,y\n";
  for (int i = 0; i < 200; ++i) text += fmt::format("t{},,k{},{},1,{}\n", i, i % 4, i % 9, i % 2);
  TableOptions options;
  options.encoding.ignore = {"dropped"};
  const auto reasons = [](const Table& table) {
    std::vector<std::string> all;
    for (const LeftOutColumn& column : table.report.left_out)
      all.push_back(column.name + ": " + column.reason);
    return all;
  };
  EXPECT_EQ(reasons(open(text, options)),
            (std::vector<std::string>{"id: text that hardly repeats, 200 different ones in 200 records",
                                      "empty: no value in the first 200 records",
                                      "dropped: named under columns.ignore"}));
  options.encoding.numeric = {"x"};
  EXPECT_EQ(reasons(open(text, options))[2],
            "kind: named neither under columns.numeric nor under columns.categorical");
  // One that a transform reads is not lost.
  options.encoding.numeric = {};
  options.transforms = {{"hash", {{"columns", {"id"}}, {"as", {"id_row"}}, {"buckets", {"50"}}}}};
  const Table hashed = open(text, options);
  EXPECT_EQ(reasons(hashed).size(), 2U);
  EXPECT_EQ(hashed.report.count(ColumnRole::kTransformed), 1);
  EXPECT_EQ(hashed.report.count(ColumnRole::kCategorical), 1) << "kind; id_row is not in the files";
}

TEST(ColumnSample, AColumnThatTheFirstFileDoesNotHaveIsNamed) {
  TableOptions options;
  options.encoding.label = "y";
  const Table table = open_table(options, [] {
    Shards shards;
    shards.push_back(open_text("a.csv", "x,y\n1,0\n2,1\n"));
    shards.push_back(open_text("b.csv", "y,later,x\n0,7,1\n"));
    shards.push_back(open_text("c.csv", "y;later;x\n0;7;1\n"));
    return shards;
  });
  EXPECT_EQ(table.source->size(), 4);
  ASSERT_EQ(table.report.left_out.size(), 1U);
  EXPECT_EQ(table.report.left_out[0].name, "later");
  EXPECT_EQ(table.report.left_out[0].reason, "in b.csv, but not in a.csv");
}

TEST(ColumnSample, WhatALeftOutColumnHoldsCanBeAsked) {
  std::string text = "id,code,x,y\n";
  for (int i = 0; i < 200; ++i)
    text += fmt::format("t{},{},{},{}\n", i, i < 150 ? std::to_string(i) : "", i % 9, i % 2);
  TableOptions options;
  options.encoding.ignore = {"code"};
  const auto facts = open(text, options).report.left_out_facts();
  ASSERT_EQ(facts.size(), 2U);
  EXPECT_EQ(facts_text(facts.at("id")), "none missing, 200 different values");
  EXPECT_EQ(facts_text(facts.at("code")), "0 to 149, 25 % missing, 150 different values");
}

// A file that says that a column is text is believed: its values are categories also where they are digits.
TEST(ColumnSample, TextOfATypedFileIsNotReadAsNumbers) {
  ColumnBlock block;
  block.reset({{"x", ValueType::kF64, 1}, {"code", ValueType::kBytes, 1}, {"y", ValueType::kI64, 1}});
  block.records = 120;
  for (int i = 0; i < 120; ++i) {
    block.columns[0].as<double>().push_back(i % 9);
    block.columns[1].as<std::string_view>().push_back(i % 2 == 0 ? "10" : "20");
    block.columns[2].as<int64_t>().push_back(i % 3 == 0 ? 1 : 0);
  }
  for (const std::string format : {"parquet", "block"}) {
    TableOptions options;
    options.format = format;
    const Table table = open(written_file(format, block), options, "t." + format);
    EXPECT_EQ(table.encoding->encoding().categorical, (std::vector<std::string>{"code"})) << format;
  }
}

TEST(ColumnSample, IsReadBackFromItsText) {
  const std::vector<ColumnSample> samples{{.records = 10, .present = 9, .numbers = 8, .distinct = 7},
                                          {.records = 10, .stays_text = true}};
  const std::string text = to_text(samples);
  EXPECT_EQ(parse_samples(text, 2), samples);
  EXPECT_EQ(parse_samples(text, 3), std::nullopt);
  EXPECT_EQ(parse_samples(text + "1", 2), std::nullopt);
  EXPECT_EQ(parse_samples("", 1), std::nullopt);
}

}  // namespace
}  // namespace lockstep
