// A stream has its source load blocks of positions ahead: an epoch's beginning finds its blocks there, within
// the memory; faults come with their batches; a seek begins anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "data/order/order.h"
#include "data/reading/file_source.h"
#include "data/stream/batch_stream.h"
#include "data/testing/test_shards.h"

namespace lockstep {
namespace {

constexpr int64_t kBlocks = 512, kBlock = 64, kRecords = kBlocks * kBlock;
constexpr int64_t kRows = 256;

// Record r holds the number r; one may have no number.
std::unique_ptr<FileSource> source_of_blocks(int64_t memory, int64_t bad = -1) {
  std::string text = "x\n";
  for (int64_t r = 0; r < kRecords; ++r) text += r == bad ? "none\n" : fmt::format("{}\n", r);
  auto shards =
      std::make_shared<ShardSet>(shard_of("csv", "x.csv", text, {.columns = {{"x", ValueType::kI32, 1}}}));
  return std::make_unique<FileSource>(
      std::move(shards), std::vector<std::shared_ptr<const Transform>>{},
      FileSourceOptions{.columns = {{"x", DType::kI32, {1}}}, .budget = memory, .block = kBlock});
}

Order order() { return {5, {.records = kRecords, .block = kBlock, .window = 4}, Shuffle::kBlock}; }

void records_of(int64_t batch, int64_t row, std::span<int64_t> records, std::vector<int64_t>* epochs) {
  std::iota(records.begin(), records.end(), batch * kRows + row);
  if (epochs != nullptr) {
    epochs->clear();
    for (const int64_t position : records) epochs->push_back(position / kRecords);
  }
  order().records_at(records);
}

BatchPlan plan_of(int64_t batches) { return {batches, kRows, 0, records_of}; }

void expect_right(const Batch& batch, int64_t number) {
  std::vector<int64_t> records(kRows);
  records_of(number, 0, records, nullptr);
  for (int64_t r = 0; r < kRows; ++r)
    ASSERT_EQ(batch.values<int32_t>(0)[static_cast<size_t>(r)], records[static_cast<size_t>(r)]);
}

int64_t loaded(const FileSource& source) { return source.stages()->read().blocks; }

class Filled {
 public:
  explicit Filled(const FileSource& source) : source_(source), batch_(source.columns(), kRows) {}
  void fill(int64_t number) {
    std::vector<int64_t> records(kRows);
    records_of(number, 0, records, nullptr);
    source_.fill(records, batch_);
    expect_right(batch_, number);
  }

 private:
  const FileSource& source_;
  Batch batch_;
};

void tell(const FileSource& source, int64_t number) {
  std::vector<int64_t> records(kRows), epochs;
  records_of(number, 0, records, &epochs);
  source.expect(records, epochs);
}

TEST(LookAhead, AnEpochFindsItsBlocksThere) {
  const int64_t memory = int64_t{130} << 10;  // of 131 kB of rows, not all are kept
  const auto source = source_of_blocks(memory);
  Filled batch(*source);
  constexpr int64_t kEpoch = kRecords / kRows;
  int64_t told = 0;
  for (int64_t number = 0; number < 3 * kEpoch; ++number) {
    const int64_t before = loaded(*source);
    batch.fill(number);
    // The first batch was not told of.
    if (number > 0) {
      EXPECT_EQ(loaded(*source), before) << number;
    }
    told = std::max(told, number + 1);
    for (int i = 0; i < 100000; ++i) {
      if (source->load_ahead()) continue;
      if ((told - number) * kRows > source->loads_ahead()) break;
      tell(*source, told++);
    }
    EXPECT_GT(told, number + 1);
  }
  EXPECT_LE(source->peak_bytes(), memory);
}

// What a job is asked for as data.memory; a little less is not enough.
TEST(LookAhead, MemoryToMixLoadsHardlyABlockTwice) {
  constexpr int64_t kMixed = 16 * 4 * kBlock * 5 / 4;
  const int64_t memory = source_of_blocks(int64_t{1} << 30)->memory_to_mix(kMixed);
  const auto loads_in = [](int64_t bytes) {
    const auto source = source_of_blocks(bytes);
    Filled batch(*source);
    for (int64_t number = 0; number < kRecords / kRows; ++number) batch.fill(number);
    EXPECT_LE(source->peak_bytes(), bytes);
    return loaded(*source);
  };
  EXPECT_LE(loads_in(memory), kBlocks * 21 / 20);
  EXPECT_GT(loads_in(memory / 2), 2 * kBlocks);
}

TEST(LookAhead, AStreamGivesTheSameBatchesWithinTheMemory) {
  for (const int64_t memory : {int64_t{60} << 10, int64_t{130} << 10, int64_t{100} << 20}) {
    const auto source = source_of_blocks(memory);
    ReaderPool pool(3);
    BatchStream stream(*source, plan_of(1 << 20), {.pool = &pool, .processors = 3, .budget = memory / 8});
    for (const int64_t start : {0, 300, 17})
      for (int64_t number = start; number < start + 200; ++number) {
        expect_right(stream.get(number), number);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    EXPECT_LE(source->peak_bytes(), memory);
  }
}

TEST(LookAhead, AFaultComesWithItsBatch) {
  constexpr int64_t kBadPosition = 100 * kRows + 7;
  const auto source = source_of_blocks(int64_t{130} << 10, order().record_at(kBadPosition));
  ReaderPool pool(2);
  BatchStream stream(*source, plan_of(1 << 20), {.pool = &pool, .processors = 2, .budget = 16 << 10});
  int64_t first = -1;
  for (int64_t number = 0; number < 128; ++number) try {
      stream.get(number);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    } catch (const UserError&) {
      if (first < 0) first = number;
    }
  // A bad record is met with the first batch that has a record of its block.
  const int64_t bad_block = order().record_at(kBadPosition) / kBlock;
  int64_t expected = 0;
  for (std::vector<int64_t> records(kRows); expected < 128; ++expected) {
    records_of(expected, 0, records, nullptr);
    if (std::any_of(records.begin(), records.end(), [&](int64_t r) { return r / kBlock == bad_block; }))
      break;
  }
  EXPECT_EQ(first, expected);
}

// Keeps what it is told.
class ToldSource : public Source {
 public:
  mutable std::mutex mutex;
  mutable std::vector<int64_t> told;
  mutable int64_t taken_back = 0;

  int64_t size() const override { return kRecords; }
  std::vector<Column> columns() const override { return {{"x", DType::kI32, {1}}}; }
  void fill(std::span<const int64_t> records, Batch& batch) const override {
    for (size_t r = 0; r < records.size(); ++r)
      batch.record<int32_t>(0, static_cast<int64_t>(r))[0] = static_cast<int32_t>(records[r]);
  }
  std::string fingerprint() const override { return "told"; }
  std::string describe(int64_t record) const override { return fmt::format("{}", record); }
  int64_t loads_ahead() const override { return 40 * kRows; }
  void expect(std::span<const int64_t> records, std::span<const int64_t> epochs) const override {
    EXPECT_EQ(epochs.size(), records.size());
    const std::lock_guard lock(mutex);
    told.insert(told.end(), records.begin(), records.end());
  }
  void expect_nothing() const override {
    const std::lock_guard lock(mutex);
    told.clear();
    ++taken_back;
  }
};

TEST(LookAhead, AStreamTellsOfEveryRecordInOrderAndTakesItBackWhenItBeginsAnew) {
  const ToldSource source;
  ReaderPool pool(2);
  BatchStream stream(source, plan_of(1 << 20), {.pool = &pool, .processors = 2, .most_ahead = 4});
  for (const int64_t start : {0, 1000}) {
    for (int64_t number = start; number < start + 100; ++number) {
      expect_right(stream.get(number), number);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    const std::lock_guard lock(source.mutex);
    ASSERT_GT(source.told.size(), 0);
    // Of one batch after another; those that were made before anything was planned are not among them.
    std::vector<int64_t> records(kRows);
    int64_t batch = start;
    for (size_t at = 0; at < source.told.size(); at += kRows, ++batch) {
      const auto told = source.told.begin() + static_cast<int64_t>(at);
      for (; batch < start + 200; ++batch) {
        records_of(batch, 0, records, nullptr);
        if (std::equal(records.begin(), records.end(), told)) break;
      }
      ASSERT_LT(batch, start + 200);
    }
  }
  EXPECT_EQ(source.taken_back, 1);
}

// Every plan brings some blocks to load, and both take a while.
class SlowSource : public ToldSource {
 public:
  mutable int64_t left = 0;
  mutable std::map<std::thread::id, int64_t> loads;

  void fill(std::span<const int64_t> records, Batch& batch) const override {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    ToldSource::fill(records, batch);
  }
  int64_t loads_ahead() const override { return 1000 * kRows; }
  void expect(std::span<const int64_t>, std::span<const int64_t>) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(mutex);
    left += 4;
  }
  bool load_ahead() const override {
    {
      const std::lock_guard lock(mutex);
      if (left == 0) return false;
      --left;
      ++loads[std::this_thread::get_id()];
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return true;
  }
};

TEST(LookAhead, AllReadersLoadWhatOneOfThemPlans) {
  const SlowSource source;
  ReaderPool pool(2);
  BatchStream stream(source, plan_of(1 << 20), {.pool = &pool, .processors = 2, .most_ahead = 4});
  for (int64_t number = 0; number < 50; ++number) {
    expect_right(stream.get(number), number);
    if (number > 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_EQ(stream.report().readers, 2);
  {
    const std::lock_guard lock(source.mutex);
    source.loads.clear();
  }
  // Nobody asks for a batch: a reader that had left would not come back.
  const auto both = [&] {
    const std::lock_guard lock(source.mutex);
    return source.loads.size() == 2 && std::all_of(source.loads.begin(), source.loads.end(),
                                                   [](const auto& one) { return one.second >= 20; });
  };
  for (int i = 0; i < 10000 && !both(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(both());
}

}  // namespace
}  // namespace lockstep
