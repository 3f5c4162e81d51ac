// Tables read from files: what they hold equals the same table in memory, and is the same for any budget,
// number of threads and order of reading.
#include "data/table/table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/order/order.h"

namespace lockstep {
namespace {

std::string table_text(int64_t first, int64_t records) {
  std::string text = "amount,kind,hour,y\n";
  for (int64_t i = first; i < first + records; ++i)
    text += fmt::format("{}.{:02},k{},{},{}\n", i * 7919 % 1000, i % 100, i * i % 53,
                        i % 11 == 0 ? "" : std::to_string(i % 24), i % 3 == 0 ? 1 : 0);
  return text;
}

TableOptions options_of(int64_t budget = int64_t{1} << 28, int threads = 1) {
  TableOptions options;
  options.encoding.label = "y";
  options.encoding.buckets = 100;
  options.budget = budget;
  options.threads = threads;
  return options;
}

// All bytes of all batches that these positions give.
std::string batches_of(const Source& source, const std::vector<int64_t>& records, int64_t batch) {
  std::string bytes;
  for (size_t at = 0; at < records.size(); at += static_cast<size_t>(batch)) {
    const size_t count = std::min(records.size() - at, static_cast<size_t>(batch));
    Batch filled(source.columns(), static_cast<int64_t>(count));
    source.fill(std::span(records).subspan(at, count), filled);
    for (size_t r = 0; r < count; ++r)
      for (size_t c = 0; c < filled.columns().size(); ++c) {
        const auto each = static_cast<size_t>(filled.bytes(c)) / count;
        bytes.append(static_cast<const char*>(filled.data(c)) + r * each, each);
      }
  }
  return bytes;
}

std::vector<int64_t> epoch_of(const Source& source) {
  const OrderShape shape{.records = source.size(), .block = source.block_records(), .lanes = 4, .window = 4};
  std::vector<int64_t> records(static_cast<size_t>(source.size()));
  Order(5, shape, Shuffle::kBlock).records(0, records);
  return records;
}

class TableFiles : public testing::Test {
 protected:
  void SetUp() override {
    for (int64_t i = 0; i < 3; ++i)
      folder_.write(fmt::format("t-{}.csv", i), table_text(i * 10000, i == 1 ? 100 : 10000));
  }
  Table open(int64_t budget = int64_t{1} << 28, int threads = 1) const {
    return open_table(options_of(budget, threads), {folder_.path("t-*.csv")});
  }

  TestFolder folder_;
};

TEST_F(TableFiles, EqualTheTableInMemory) {
  const Table memory = open_table(options_of(), [] {
    Shards shards;
    for (int64_t i = 0; i < 3; ++i)
      shards.push_back(open_text(fmt::format("t-{}.csv", i), table_text(i * 10000, i == 1 ? 100 : 10000)));
    return shards;
  });
  const Table table = open();
  EXPECT_EQ(table.encoding->fitted(), memory.encoding->fitted());
  std::vector<int64_t> records = epoch_of(*table.source);
  records.push_back(kNoRecord);
  EXPECT_EQ(batches_of(*table.source, records, 32), batches_of(*memory.source, records, 32));
}

TEST_F(TableFiles, GiveTheSameBatchesForAnyBudgetAndBatch) {
  const Table table = open();
  EXPECT_EQ(table.source->size(), 20100);
  EXPECT_GT(table.source->block_records(), 1);
  const std::vector<int64_t> records = epoch_of(*table.source);
  const std::string expected = batches_of(*table.source, records, 64);
  const int64_t all_blocks = table.source->stages()->read().blocks;
  EXPECT_EQ(batches_of(*table.source, records, 100), expected);
  EXPECT_EQ(table.source->stages()->read().blocks, all_blocks);  // there was room for all of them

  const int64_t tight = 512 << 10;
  const Table small = open(tight);
  EXPECT_EQ(batches_of(*small.source, records, 37), expected);
  EXPECT_LE(small.source->peak_bytes(), tight);
  EXPECT_EQ(small.source->fingerprint(), table.source->fingerprint());
  EXPECT_THROW(open(1000), UserError);
}

TEST_F(TableFiles, EveryBlockIsReadOnceInBlockOrder) {
  // Room for the blocks in use, not for all.
  const Table table = open(900 << 10);
  const std::vector<int64_t> records = epoch_of(*table.source);
  batches_of(*table.source, records, 64);
  // A few records are read by themselves at first, and again with their blocks: 46 of 20100 here.
  EXPECT_LT(table.source->stages()->read().decoded, table.source->size() + table.source->size() / 50);
}

TEST_F(TableFiles, AreFittedTheSameByAnyNumberOfThreads) {
  const Table one = open();
  std::filesystem::remove_all(folder_.path(".lockstep-index"));
  const Table four = open(int64_t{1} << 28, 4);
  EXPECT_EQ(one.encoding->fitted(), four.encoding->fitted());
  EXPECT_EQ(one.source->fingerprint(), four.source->fingerprint());
}

TEST_F(TableFiles, AFitIsKeptBesideTheIndex) {
  const Table first = open();
  const Table second = open();
  EXPECT_EQ(second.encoding->fitted(), first.encoding->fitted());
  int64_t fits = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path(".lockstep-index")))
    fits += entry.path().filename().string().starts_with("fit-") ? 1 : 0;
  EXPECT_EQ(fits, 1);
}

TEST_F(TableFiles, ManyThreadsMayReadAtOnce) {
  const Table table = open(900 << 10);
  const std::vector<int64_t> records = epoch_of(*table.source);
  const std::string expected = batches_of(*open().source, records, 64);
  std::vector<std::string> found(4);
  std::vector<std::jthread> threads;
  for (std::string& bytes : found)
    threads.emplace_back([&] { bytes = batches_of(*table.source, records, 64); });
  threads.clear();
  for (const std::string& bytes : found) EXPECT_EQ(bytes, expected);
}

TEST_F(TableFiles, AFileThatChangesIsNoticed) {
  const Table table = open(512 << 10);
  folder_.write("t-0.csv", table_text(1, 10000));
  // The run has the old file open; what was written beside it does not matter.
  EXPECT_NO_THROW(batches_of(*table.source, {0, 5000}, 2));
  EXPECT_NE(open().source->fingerprint(), table.source->fingerprint());
  const Table other = open(512 << 10);
  std::filesystem::resize_file(folder_.path("t-0.csv"), 1000);
  EXPECT_THROW(batches_of(*other.source, {0, 9000}, 2), UserError);
}

TEST_F(TableFiles, ABadLabelIsNamedByFileAndLine) {
  folder_.write("bad.csv", table_text(0, 300) + "1,k1,2,maybe\n");
  try {
    const Table table = open_table(options_of(), {folder_.path("bad.csv")});
    batches_of(*table.source, {300}, 1);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()),
              folder_.path("bad.csv") + ":302: the label 'y' is 'maybe'; it must be 0 or 1");
  }
}

TEST_F(TableFiles, TransformsComeBeforeTheEncoding) {
  TableOptions options = options_of();
  options.transforms = {{"clip", {{"columns", {"amount"}}, {"high", {"10"}}}}};
  const Table clipped = open_table(options, {folder_.path("t-*.csv")});
  EXPECT_NE(clipped.encoding->fitted(), open().encoding->fitted());
  EXPECT_LE(clipped.encoding->encoding().numeric[0].mean, 10);
  options.transforms = {{"clop", {}}};
  EXPECT_THROW(open_table(options, {folder_.path("t-*.csv")}), UserError);
}

TEST_F(TableFiles, PartsAreReadInTheOrderTheyAreNamed) {
  TableOptions options = options_of();
  options.in_parts = true;
  const Table table = open_table(options, {folder_.path("t-2.csv"), folder_.path("t-[01].csv")});
  EXPECT_EQ(table.parts, (std::vector<int64_t>{10000, 10100}));
  EXPECT_EQ(table.source->describe(0), folder_.path("t-2.csv") + ":2");
  EXPECT_EQ(table.source->describe(10000), folder_.path("t-0.csv") + ":2");
  EXPECT_THROW(open_table(options, {folder_.path("t-2.csv"), folder_.path("t-*.csv")}), UserError);
}

TEST_F(TableFiles, ASplitKeepsEntitiesApart) {
  TableOptions options = options_of();
  options.split = TableSplit{"kind", 0.3, 4};
  options.encoding.buckets = 1 << 24;  // so that kinds do not share one
  const Table table = open_table(options, {folder_.path("t-*.csv")});
  ASSERT_TRUE(table.held_out);
  EXPECT_GT(table.source->size(), 10000);
  EXPECT_GT(table.held_out->size(), 1000);
  EXPECT_EQ(table.source->size() + table.held_out->size(), 20100);
  // Column 1 holds the entity's bucket.
  std::set<int32_t> sides[2];
  Batch one(table.source->columns(), 1);
  for (int64_t record = 0; record < 1000; ++record)
    for (const int side : {0, 1}) {
      (side == 0 ? table.source : table.held_out)->fill(std::span(&record, 1), one);
      sides[side].insert(one.values<int32_t>(1)[0]);
    }
  for (const int32_t kind : sides[0]) EXPECT_EQ(sides[1].count(kind), 0);
  // Constants are fitted to the one side only, and the split is found again as it was.
  EXPECT_NE(table.encoding->fitted(), open().encoding->fitted());
  const Table again = open_table(options, {folder_.path("t-*.csv")});
  EXPECT_EQ(again.source->fingerprint(), table.source->fingerprint());
  EXPECT_EQ(again.held_out->describe(500), table.held_out->describe(500));
  options.split->eval = 1e-9;
  EXPECT_THROW(open_table(options, {folder_.path("t-*.csv")}), UserError);
}

}  // namespace
}  // namespace lockstep
