// Records that cannot be used are found when a table is opened, whatever is wrong with them and wherever they
// lie, not at the step that meets them.
#include "data/table/look_through.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/table/table.h"
#include "data/testing/test_blocks.h"

namespace lockstep {
namespace {

constexpr int kRows = 9000;

std::string table(const std::function<std::string(int)>& value,
                  const std::function<std::string(int)>& label) {
  std::string text = "x,c,y\n";
  for (int i = 0; i < kRows; ++i) text += fmt::format("{},k{},{}\n", value(i), i % 5, label(i));
  return text;
}

std::string good_value(int i) { return std::to_string(i % 100); }
std::string good_label(int i) { return i % 4 == 0 ? "1" : "0"; }

TableOptions options_of(int threads = 1) {
  TableOptions options;
  options.encoding.label = "y";
  options.encoding.buckets = 50;
  options.threads = threads;
  options.looks_through = true;
  return options;
}

std::string error_of(const std::function<void()>& open) {
  try {
    open();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

class LookThrough : public testing::Test {
 protected:
  std::vector<std::string> write(const std::string& name, const std::string& text) const {
    folder_.write(name, text);
    return {folder_.path(name)};
  }
  int64_t kept() const {
    int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path(".lockstep-index")))
      count += entry.path().filename().string().starts_with("facts-") && entry.path().extension() == ".txt";
    return count;
  }

  TestFolder folder_;
};

TEST_F(LookThrough, OfSeveralBadRecordsTheFirstIsNamedByAnyNumberOfThreads) {
  const auto files = write("t.csv", table(good_value, [](int i) {
                             return i == 8000 ? std::string("late") : i == 3000 ? "maybe" : good_label(i);
                           }));
  for (const int threads : {1, 2, 5}) {
    const std::string error = error_of([&] { open_table(options_of(threads), files); });
    EXPECT_TRUE(error.starts_with(folder_.path("t.csv:3002: the label 'y' is 'maybe'")))
        << threads << " threads: " << error;
  }
}

TEST_F(LookThrough, RecordsToEvaluateOnAreLookedAtToo) {
  const auto files = write("t.csv", table(good_value, good_label));
  const auto bad = write(
      "eval.csv", table([](int i) { return i == 77 ? std::string("inf") : good_value(i); }, good_label));
  const Table fitted = open_table(options_of(), files);
  EXPECT_TRUE(error_of([&] {
                open_table(options_of(), fitted, bad);
              }).starts_with(folder_.path("eval.csv:79: column 'x' has 'inf', which is not a number")));
  // Those that a split holds out.
  TableOptions split = options_of();
  split.encoding.hold_out = 0.1;
  split.filter = "x >= 0";
  const auto late =
      write("late.csv",
            table(good_value, [](int i) { return i == kRows - 1 ? std::string("late") : good_label(i); }));
  EXPECT_NE(error_of([&] { open_table(split, late); }).find("the label 'y' is 'late'"), std::string::npos);
}

TEST_F(LookThrough, IsDoneOnceAndKept) {
  const auto files = write("t.csv", table(good_value, good_label));
  const Table first = open_table(options_of(), files);
  EXPECT_EQ(kept(), 1);
  const Table second = open_table(options_of(3), files);
  EXPECT_EQ(kept(), 1);
  ASSERT_EQ(first.report.used.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(first.report.used[i].facts, second.report.used[i].facts);
  EXPECT_EQ(facts_text(*first.report.used[0].facts), "0 to 99, none missing, 100 different values");
  EXPECT_EQ(first.report.used[1].role, ColumnRole::kCategorical);
  EXPECT_EQ(first.report.used[2].role, ColumnRole::kLabel);
  std::filesystem::remove_all(folder_.path(".lockstep-index"));
  const Table again = open_table(options_of(4), files);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(first.report.used[i].facts, again.report.used[i].facts);
}

// Text cannot hold them, typed columns can: they would make the mean of the column one of them.
TEST_F(LookThrough, NumbersThatAreNotFiniteAreRefusedOrLeftOut) {
  for (const double wrong : {std::numeric_limits<double>::infinity(), -1e31}) {
    ColumnBlock block;
    block.reset({{"x", ValueType::kF64, 1}, {"y", ValueType::kI64, 1}});
    block.records = 3000;
    for (int i = 0; i < 3000; ++i) {
      block.columns[0].as<double>().push_back(i == 1234 ? wrong : i % 50);
      block.columns[1].as<int64_t>().push_back(i % 2);
    }
    for (const std::string format : {"parquet", "block"}) {
      const auto files = write("t." + format, written_file(format, block));
      TableOptions options = options_of(2);
      options.format = format;
      const std::string error = error_of([&] { open_table(options, files); });
      EXPECT_NE(error.find(fmt::format("column 'x' has {}, which is not a finite number", wrong)),
                std::string::npos)
          << error;
      EXPECT_NE(error.find("1234"), std::string::npos) << error;
      if (format == "block") continue;  // which leaves out whole blocks
      options.bad = BadRecords::kSkip;
      options.most_bad = 0.01;
      EXPECT_EQ(open_table(options, files).source->size(), 2999);
    }
  }
}

TEST_F(LookThrough, TokensBeyondTheVocabularyOfAnEncoderAreFound) {
  std::string text = "t,y\n";
  for (int i = 0; i < 500; ++i) text += fmt::format("{},{}\n", i == 400 ? "z" : "a", i % 2);
  TableOptions options = options_of();
  options.text = TextRole{"t", "y", 8, 'y' + 1, 2};
  EXPECT_TRUE(error_of([&] {
                open_table(options, write("t.csv", text));
              }).starts_with(folder_.path("t.csv:402: column 't' has the token 123, which is not in")));
}

}  // namespace
}  // namespace lockstep
