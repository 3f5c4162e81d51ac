// Filters, splits and down-sampling of tables: what is left equals a file that holds only that, nothing but
// the records decides, and both sides are as the options say.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/table/table.h"

namespace lockstep {
namespace {

constexpr int64_t kRecords = 6000;

// Record i as a line; a few have no label, and if wanted a few have an amount that is none.
std::string line(int64_t i, bool bad = false) {
  return fmt::format("{},k{},{},{}\n", bad && i % 500 == 7 ? "much" : std::to_string(i * 7919 % 1000),
                     i * i % 53, i % 24,
                     i % 100 == 99 ? ""
                     : i % 3 == 0  ? "1"
                                   : "0");
}

std::string text_where(const std::function<bool(int64_t)>& wanted, bool bad = false) {
  std::string text = "amount,kind,hour,y\n";
  for (int64_t i = 0; i < kRecords; ++i)
    if (wanted(i)) text += line(i, bad);
  return text;
}

bool all(int64_t) { return true; }
bool labelled(int64_t i) { return i % 100 != 99; }

std::vector<std::byte> values_of(const Source& source) {
  std::vector<std::byte> bytes;
  for (int64_t first = 0; first < source.size(); first += 256) {
    std::vector<int64_t> records;
    for (int64_t r = first; r < std::min(first + 256, source.size()); ++r) records.push_back(r);
    Batch batch(source.columns(), static_cast<int64_t>(records.size()));
    source.fill(records, batch);
    for (size_t c = 0; c < batch.columns().size(); ++c) {
      const auto* data = static_cast<const std::byte*>(batch.data(c));
      bytes.insert(bytes.end(), data, data + batch.bytes(c));
    }
  }
  return bytes;
}

class Selection : public testing::Test {
 protected:
  Selection() {
    folder_.write("all/t.csv", text_where(all));
    options_.encoding.label = "y";
    options_.encoding.buckets = 100;
    options_.filter = "y is not missing";
    options_.threads = 2;
  }
  Table open(const std::string& file = "all/t.csv") const {
    return open_table(options_, {folder_.path(file)});
  }

  TestFolder folder_;
  TableOptions options_;
};

TEST_F(Selection, EqualsAFileOfTheseRecordsOnly) {
  const auto wanted = [](int64_t i) { return labelled(i) && i % 24 < 5 && (i * i % 53) != 4; };
  options_.filter = "y is not missing and hour < 5 and not kind in ('k4')";
  const Table filtered = open();
  folder_.write("some/t.csv", text_where(wanted));
  options_.filter.clear();
  const Table some = open("some/t.csv");
  ASSERT_EQ(filtered.source->size(), some.source->size());
  EXPECT_EQ(filtered.encoding->fitted(), some.encoding->fitted());
  EXPECT_EQ(values_of(*filtered.source), values_of(*some.source));
  // By the line of the file that has them.
  int64_t third = 0;
  for (int64_t i = 0, left = 3; left > 0; ++i)
    if (wanted(i) && --left == 0) third = i;
  EXPECT_EQ(filtered.source->describe(2), fmt::format("{}:{}", folder_.path("all/t.csv"), third + 2));
}

// Also where the model takes the column as a number, which holds fewer of them.
TEST_F(Selection, ComparesWholeNumbersOfTextFilesExactly) {
  std::string csv = "id,x,y\n", jsonl;
  for (int64_t i = 0; i < 50; ++i) {
    csv += fmt::format("{},{},{}\n", 9007199254740980 + i, i, i % 2);
    jsonl += fmt::format("{{\"id\":{},\"x\":{},\"y\":{}}}\n", 9007199254740980 + i, i, i % 2);
  }
  folder_.write("ids/t.csv", csv);
  folder_.write("ids/t.jsonl", jsonl);
  for (const std::string format : {"csv", "jsonl"}) {
    options_.format = format;
    options_.encoding.numeric = {"id", "x"};
    options_.filter = "id == 9007199254740993 or id > 9007199254741027";
    EXPECT_EQ(open("ids/t." + format).source->size(), 3) << format;
  }
}

TEST_F(Selection, IsPartOfTheFingerprint) {
  const std::string one = open().source->fingerprint();
  EXPECT_EQ(open().source->fingerprint(), one);
  options_.filter = "  ( y is not  missing )";
  EXPECT_EQ(open().source->fingerprint(), one);
  options_.filter = "y is not missing and hour >= 0";
  EXPECT_NE(open().source->fingerprint(), one);
}

TEST_F(Selection, HoldsForBothSides) {
  options_.encoding.hold_out = 0.25;
  const Table held = open();
  EXPECT_EQ(held.source->size() + held.held_out->size(), 5940);
  EXPECT_EQ(held.held_out->size(), 1485);
  options_.encoding.hold_out = 0;
  options_.split = TableSplit{"kind", 0.3, 4};
  const Table split = open();
  EXPECT_EQ(split.source->size() + split.held_out->size(), 5940);
  // Other files are filtered too; neither split nor sampled.
  options_.subsample = TableSubsample{.where = "y == 0", .keep = 0.1};
  EXPECT_EQ(open_table(options_, split, {folder_.path("all/t.csv")}).source->size(), 5940);
}

TEST_F(Selection, AFilterThatNothingMatchesIsRefused) {
  options_.filter = "hour > 99";
  try {
    open();
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()), "none of 6000 records matches the filter hour > 99");
  }
  options_.filter = "minute > 3";
  EXPECT_THROW(open(), UserError);
}

TEST_F(Selection, KeepsAShareAndGivesItTheWeight) {
  const int64_t everything = open().source->size();
  options_.subsample = TableSubsample{.where = "y == 0", .keep = 0.1, .seed = 3};
  const Table table = open();
  const int64_t common = everything - 2000 + 20,
                rare = everything - common;  // labels 1: every third, less a few
  const int64_t size = table.source->size();
  EXPECT_NEAR(static_cast<double>(size - rare), 0.1 * static_cast<double>(common),
              5 * std::sqrt(0.09 * 4000));
  Batch batch(table.source->columns(), 512);
  std::vector<int64_t> records(512);
  std::iota(records.begin(), records.end(), 0);
  table.source->fill(records, batch);
  const auto weights = batch.values<float>(batch.index_of(kWeightsColumn));
  const auto labels = batch.values<float>(batch.index_of("labels"));
  const double mean =
      (static_cast<double>(rare) + 10 * static_cast<double>(size - rare)) / static_cast<double>(size);
  for (size_t i = 0; i < weights.size(); ++i)
    EXPECT_FLOAT_EQ(weights[i], static_cast<float>((labels[i] == 0 ? 10 : 1) / mean));
  options_.subsample->reweight = false;
  EXPECT_EQ(open().source->columns().size(), table.source->columns().size() - 1);
  options_.subsample->seed = 4;
  EXPECT_NE(open().source->describe(40), table.source->describe(40));
}

TEST_F(Selection, KeepsEntitiesAsAWhole) {
  options_.encoding.buckets = 1 << 24;
  options_.subsample =
      TableSubsample{.where = "hour >= 0", .keep = 0.5, .reweight = false, .by = "kind", .seed = 3};
  const Table table = open();
  std::set<int32_t> kinds;
  for (int64_t record = 0; record < table.source->size(); ++record) {
    Batch one(table.source->columns(), 1);
    table.source->fill(std::span(&record, 1), one);
    kinds.insert(one.values<int32_t>(1)[0]);
  }
  EXPECT_LT(kinds.size(), 27U);  // squares modulo 53
  EXPECT_GT(kinds.size(), 5U);
  // All labelled records of those kinds and no others.
  options_.subsample.reset();
  const Table whole = open();
  int64_t expected = 0;
  for (int64_t record = 0; record < whole.source->size(); ++record) {
    Batch one(whole.source->columns(), 1);
    whole.source->fill(std::span(&record, 1), one);
    expected += kinds.contains(one.values<int32_t>(1)[0]) ? 1 : 0;
  }
  EXPECT_EQ(table.source->size(), expected);
}

TEST_F(Selection, BadRecordsAreLeftOutBeforeTheFilter) {
  folder_.write("bad/t.csv", text_where(all, true));
  options_.encoding.numeric = {"amount", "hour"};
  options_.encoding.categorical = {"kind"};
  options_.filter = "y is not missing and hour < 12";
  EXPECT_THROW(values_of(*open("bad/t.csv").source), UserError);
  options_.bad = BadRecords::kSkip;
  options_.most_bad = 0.01;
  const Table skipped = open("bad/t.csv");
  EXPECT_EQ(skipped.source->shards().bad_count(), 12);
  folder_.write("good/t.csv", text_where([](int64_t i) { return i % 500 != 7; }));
  const Table good = open("good/t.csv");
  EXPECT_EQ(skipped.encoding->fitted(), good.encoding->fitted());
  EXPECT_EQ(values_of(*skipped.source), values_of(*good.source));
  // A column that only the filter asks for decides what is bad as well.
  options_.encoding.numeric = {"hour"};
  options_.encoding.ignore = {"amount"};
  options_.filter = "y is not missing and amount > 3";
  EXPECT_EQ(open("bad/t.csv").source->shards().bad_count(), 12);
}

TEST_F(Selection, PartsOfAMixtureHaveTheirOwnCounts) {
  folder_.write("all/u.csv", text_where([](int64_t i) { return i < 1000; }));
  options_.in_parts = true;
  const Table table = open_table(options_, {folder_.path("all/u.csv"), folder_.path("all/t.csv")});
  EXPECT_EQ(table.parts, (std::vector<int64_t>{990, 5940}));
}

}  // namespace
}  // namespace lockstep
