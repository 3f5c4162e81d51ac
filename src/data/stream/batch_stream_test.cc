// A stream gives the batches of its plan whatever the number of readers, and says what it was slowed by.
#include "data/stream/batch_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "base/error.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

// Record i holds the number i. Every batch takes that long in each stage.
class SlowSource : public Source {
 public:
  std::array<milliseconds, kStageNames.size()> slow{};
  int64_t slow_until = 1 << 20;  // batches that begin later take no time
  int64_t held_record = -1;      // the batch that it begins is held until that many were begun
  int64_t held_until = 0;
  int64_t bad_record = -1, bad_until = -1;
  mutable std::atomic<int64_t> fills = 0;

  int64_t size() const override { return 1 << 20; }
  std::vector<Column> columns() const override { return {{"x", DType::kI64, {}}}; }
  void fill(std::span<const int64_t> records, Batch& batch) const override {
    check_fill(records, batch);
    ++fills;
    for (size_t stage = 0; stage < slow.size(); ++stage) {
      const StageCounters::Timer timer(counters_, static_cast<InputStage>(stage));
      if (records[0] < slow_until) std::this_thread::sleep_for(slow[stage]);
    }
    if (records[0] == held_record) {
      for (int i = 0; i < 5000 && fills < held_until; ++i) std::this_thread::sleep_for(milliseconds(1));
      std::this_thread::sleep_for(milliseconds(20));
    }
    for (size_t r = 0; r < records.size(); ++r) {
      if (records[r] >= bad_record && records[r] < std::max(bad_until, bad_record + 1) && bad_record >= 0)
        throw UserError("record {} is bad", records[r]);
      batch.record<int64_t>(0, static_cast<int64_t>(r))[0] = records[r];
    }
  }
  std::string fingerprint() const override { return "slow"; }
  std::string describe(int64_t record) const override { return fmt::format("{}", record); }
  const StageCounters* stages() const override { return &counters_; }

 private:
  mutable StageCounters counters_;
};

// Batches of 8 consecutive records.
BatchPlan plan_of(int64_t batches) {
  return {batches, 8, 0, [](int64_t batch, int64_t row, std::span<int64_t> records, std::vector<int64_t>*) {
            std::iota(records.begin(), records.end(), batch * 8 + row);
          }};
}

int64_t first_of(const Batch& batch) { return batch.values<int64_t>(0)[0]; }

TEST(BatchStream, GivesBatchesInOrderForAnyReaders) {
  const SlowSource source;
  for (const int readers : {0, 1, 2, 8}) {
    std::unique_ptr<ReaderPool> pool;
    if (readers > 0) pool = std::make_unique<ReaderPool>(readers);
    BatchStream stream(source, plan_of(500), {.pool = pool.get(), .processors = 8});
    for (int64_t n = 0; n < 500; ++n) {
      const Batch& batch = stream.get(n);
      for (int64_t r = 0; r < 8; ++r) ASSERT_EQ(batch.values<int64_t>(0)[static_cast<size_t>(r)], n * 8 + r);
    }
    EXPECT_EQ(stream.report().batches, 500);
    EXPECT_LE(stream.report().readers, readers);
  }
}

TEST(BatchStream, LargeBatchesAreMadeInPieces) {
  const SlowSource source;
  constexpr int64_t kRows = 200000, kLast = 140001;
  const BatchPlan plan{4, kRows, kLast,
                       [](int64_t batch, int64_t row, std::span<int64_t> records, std::vector<int64_t>*) {
                         std::iota(records.begin(), records.end(), batch * kRows + row);
                       }};
  for (const int readers : {0, 1, 3}) {
    source.fills = 0;
    std::unique_ptr<ReaderPool> pool;
    if (readers > 0) pool = std::make_unique<ReaderPool>(readers);
    BatchStream stream(source, plan, {.pool = pool.get(), .processors = 8});
    for (int64_t n = 0; n < 4; ++n) {
      const Batch& batch = stream.get(n);
      ASSERT_EQ(batch.records(), n < 3 ? kRows : kLast);
      for (int64_t r = 0; r < batch.records(); ++r)
        ASSERT_EQ(batch.values<int64_t>(0)[static_cast<size_t>(r)], n * kRows + r);
    }
    EXPECT_GT(source.fills, 4 * 3);
  }
}

// With one batch ahead, two readers would otherwise take turns.
TEST(BatchStream, WhereFewAreMadeAheadBatchesAreCutForAllReaders) {
  constexpr int64_t kRows = 4096, kBytes = kRows * 8;
  const BatchPlan plan{3, kRows, 0,
                       [](int64_t batch, int64_t row, std::span<int64_t> records, std::vector<int64_t>*) {
                         std::iota(records.begin(), records.end(), batch * kRows + row);
                       }};
  const auto fills = [&](int64_t budget, int processors) {
    const SlowSource source;
    BatchStream stream(source, plan, {.processors = processors, .budget = budget});
    for (int64_t n = 0; n < 3; ++n) EXPECT_EQ(first_of(stream.get(n)), n * kRows);
    return source.fills.load();
  };
  EXPECT_EQ(fills(100 * kBytes, 2), 3);
  EXPECT_EQ(fills(3 * kBytes, 2), 3 * 4);
  EXPECT_EQ(fills(kBytes / 2, 2), 3 * 8);
  EXPECT_EQ(fills(kBytes / 2, 1000), 3 * 16);  // of 256 rows
}

// Notes what the caller makes itself.
class NotesTheCaller : public SlowSource {
 public:
  mutable std::atomic<int64_t> made = -1;  // the last record

  void fill(std::span<const int64_t> records, Batch& batch) const override {
    if (std::this_thread::get_id() == caller_) made = records.back();
    SlowSource::fill(records, batch);
  }

 private:
  std::thread::id caller_ = std::this_thread::get_id();
};

// There may be no processor for both: making what comes later would keep the reader from what is needed now.
TEST(BatchStream, ACallerWithWorkOfItsOwnMakesNothingWhileItWaitsForAReader) {
  constexpr int64_t kHeld = 40;
  NotesTheCaller source;
  source.held_record = kHeld * 8;
  ReaderPool pool(1);
  BatchStream stream(source, plan_of(60), {.pool = &pool, .most_ahead = 4});
  for (int64_t n = 0; n < kHeld; ++n) {
    stream.get(n);
    std::this_thread::sleep_for(milliseconds(n == kHeld - 1 ? 0 : 2));
    for (int i = 0; n == kHeld - 2 && i < 5000 && source.fills <= kHeld; ++i)
      std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(first_of(stream.get(kHeld)), kHeld * 8);
  EXPECT_LT(source.made, kHeld * 8);
}

TEST(BatchStream, OfSeveralFaultsThatOfTheFirstRowIsThrown) {
  SlowSource source;
  source.bad_record = 40000;
  source.bad_until = 90000;
  const BatchPlan plan{2, 100000, 0,
                       [](int64_t batch, int64_t row, std::span<int64_t> records, std::vector<int64_t>*) {
                         std::iota(records.begin(), records.end(), batch * 100000 + row);
                       }};
  ReaderPool pool(3);
  for (int i = 0; i < 5; ++i) {
    BatchStream stream(source, plan, {.pool = &pool, .processors = 3});
    try {
      stream.get(0);
      FAIL();
    } catch (const UserError& error) {
      EXPECT_STREQ(error.what(), "record 40000 is bad");
    }
    EXPECT_EQ(first_of(stream.get(1)), 100000);
  }
}

TEST(BatchStream, BeginsAnewAnywhere) {
  const SlowSource source;
  ReaderPool pool(3);
  BatchStream stream(source, plan_of(1000), {.pool = &pool, .processors = 3});
  for (const int64_t start : {0, 700, 20, 21, 5, 999, 400})
    for (int64_t n = start; n < std::min<int64_t>(start + 30, 1000); ++n)
      ASSERT_EQ(first_of(stream.get(n)), n * 8) << start;
  EXPECT_THROW(stream.get(1000), InternalError);
}

TEST(BatchStream, MakesNoMoreAheadThanMemoryAllows) {
  const SlowSource source;
  ReaderPool pool(4);
  // Room for five batches, one of which the caller holds.
  BatchStream stream(source, plan_of(1000), {.pool = &pool, .processors = 4, .budget = 5 * 64});
  for (int64_t n = 0; n < 200; ++n) {
    stream.get(n);
    ASSERT_LE(source.fills, n + 1 + 4);
  }
  EXPECT_LE(stream.report().peak_bytes, 5 * 64);
}

TEST(BatchStream, AnErrorComesWithItsBatch) {
  SlowSource source;
  source.bad_record = 12 * 8 + 3;
  ReaderPool pool(2);
  BatchStream stream(source, plan_of(50), {.pool = &pool, .processors = 2});
  for (int64_t n = 0; n < 12; ++n) EXPECT_EQ(first_of(stream.get(n)), n * 8);
  EXPECT_THROW(stream.get(12), UserError);
  EXPECT_THROW(stream.get(12), UserError);
  EXPECT_EQ(first_of(stream.get(13)), 13 * 8);
}

TEST(BatchStream, EndsWhileReadersAreAtWork) {
  SlowSource source;
  source.slow.fill(milliseconds(2));
  ReaderPool pool(4);
  for (int i = 0; i < 5; ++i) {
    BatchStream stream(source, plan_of(1000), {.pool = &pool, .processors = 4});
    stream.get(0);
  }
}

TEST(BatchStream, NamesTheStageThatIsSlow) {
  for (size_t stage = 0; stage < kStageNames.size(); ++stage)
    for (const bool ahead : {false, true}) {
      SlowSource source;
      source.slow[stage] = milliseconds(5);
      ReaderPool pool(2);
      BatchStream stream(source, plan_of(12), {.pool = ahead ? &pool : nullptr, .processors = 2});
      for (int64_t n = 0; n < 12; ++n) stream.get(n);
      EXPECT_EQ(stream.report().slowest(), kStageNames[stage]);
      EXPECT_NE(stream.report().sentence().find(fmt::format("for {}: ", kStageNames[stage])),
                std::string::npos)
          << stream.report().sentence();
    }
}

TEST(BatchStream, NamesABatchThatTheOthersWaitFor) {
  SlowSource source;
  // Until a second reader is there.
  source.slow.fill(milliseconds(1));
  source.slow_until = 20 * 8;
  source.held_record = 40 * 8;
  source.held_until = 45;
  ReaderPool pool(2);
  BatchStream stream(source, plan_of(60), {.pool = &pool, .processors = 2, .most_ahead = 4});
  for (int64_t n = 0; n < 60; ++n) {
    stream.get(n);
    // Batch 40 is a reader's then, not the caller's.
    for (int i = 0; n == 38 && i < 5000 && source.fills < 43; ++i)
      std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(stream.report().readers, 2);
  EXPECT_GT(stream.report().waited[kReorderWait], 0) << stream.report().sentence();
}

TEST(BatchStream, SaysThatTheInputKeepsUp) {
  const SlowSource source;
  ReaderPool pool(1);
  BatchStream stream(source, plan_of(40), {.pool = &pool});
  for (int64_t n = 0; n < 40; ++n) {
    stream.get(n);
    std::this_thread::sleep_for(milliseconds(2));
  }
  const InputReport report = stream.report();
  EXPECT_GT(report.consumer, 0);
  EXPECT_LT(report.waited_in_all(), report.seconds);
}

}  // namespace
}  // namespace lockstep
