#include "data/order/step_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace lockstep {
namespace {

Order blocks(int64_t records) { return {3, OrderShape{.records = records, .block = 32}, Shuffle::kBlock}; }

std::vector<int64_t> positions_of(const StepOrder& order, int64_t first, int64_t from, int64_t to) {
  std::vector<int64_t> all;
  for (int64_t m = from; m < to; ++m) {
    std::vector<int64_t> positions(static_cast<size_t>(order.microbatch()));
    order.positions(first, m, positions);
    all.insert(all.end(), positions.begin(), positions.end());
  }
  return all;
}

TEST(StepOrder, GoldenPositions) {
  const StepOrder order(blocks(40001), 4, 8);
  EXPECT_EQ(positions_of(order, 0, 0, 3), (std::vector<int64_t>{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21}));
  // The next epoch begins at 40001, which has lane 0 again.
  EXPECT_EQ(positions_of(order, 39992, 0, 2),
            (std::vector<int64_t>{40000, 40001, 40017, 40002, 40018, 40003, 40019, 40004}));
}

TEST(StepOrder, AStepHasItsPositionsWhateverTheMicrobatch) {
  for (const int64_t records : {100, 1000, 5000, 40001})
    for (const int64_t microbatch : {1, 6, 32, 96})
      for (const int64_t first : {0, 96, 960, 39936}) {
        const StepOrder order(blocks(records), microbatch, 96 / microbatch);
        std::vector<int64_t> all = positions_of(order, first, 0, order.microbatches());
        std::sort(all.begin(), all.end());
        std::vector<int64_t> expected(96);
        std::iota(expected.begin(), expected.end(), first);
        EXPECT_EQ(all, expected) << records << " " << microbatch << " " << first;
      }
}

TEST(StepOrder, WorkersReadBlocksOfTheirOwn) {
  // Far enough from the end that every record has a lane.
  const StepOrder order(blocks(32 * 16 * 80), 8, 16);
  for (const int64_t workers : {2, 4, 8, 16}) {
    std::set<int64_t> seen;
    size_t counted = 0;
    for (int64_t worker = 0; worker < workers; ++worker) {
      std::set<int64_t> own;
      for (int64_t step = 0; step < 20; ++step)
        for (int64_t m = worker * 16 / workers; m < (worker + 1) * 16 / workers; ++m) {
          std::vector<int64_t> records;
          order.records(step * order.samples(), m, records);
          for (const int64_t record : records) own.insert(record / 32);
        }
      counted += own.size();
      seen.insert(own.begin(), own.end());
    }
    EXPECT_EQ(counted, seen.size()) << workers;
  }
}

TEST(StepOrder, OtherOrdersAreTakenAsTheyCome) {
  for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kGlobal}) {
    const Order order(3, OrderShape{.records = 10000, .block = 32}, shuffle);
    std::vector<int64_t> expected(40), found, epochs;
    order.records(9960 + 40, expected);
    StepOrder(order, 40, 3).records(9960, 1, found, &epochs);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(epochs, std::vector<int64_t>(40, 1));
  }
}

TEST(StepOrder, AMicrobatchMayLieInTwoEpochs) {
  const Order order = blocks(40000);
  const StepOrder steps(order, 64, 2);
  std::vector<int64_t> positions(64), records, epochs;
  steps.positions(39960, 1, positions);
  steps.records(39960, 1, records, &epochs);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(records[i], order.record_at(positions[i]));
    EXPECT_EQ(epochs[i], positions[i] / 40000);
  }
  EXPECT_TRUE(std::count(epochs.begin(), epochs.end(), 0) > 0 &&
              std::count(epochs.begin(), epochs.end(), 1) > 0);
}

}  // namespace
}  // namespace lockstep
