// The order of records: a bijection for every size, golden vectors, and the statistics of a good shuffle.
#include "data/order/order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/error.h"

namespace lockstep {
namespace {

bool is_bijection(int64_t size, uint64_t epoch) {
  const Permutation permutation(9, epoch, size);
  std::vector<bool> seen(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    const int64_t record = permutation(i);
    if (record < 0 || record >= size || seen[static_cast<size_t>(record)]) return false;
    seen[static_cast<size_t>(record)] = true;
  }
  return true;
}

TEST(Order, IsABijectionForEverySmallSize) {
  for (int64_t size = 1; size <= 2000; ++size) EXPECT_TRUE(is_bijection(size, size % 7)) << size;
}

TEST(Order, IsABijectionAroundPowersOfTwo) {
  for (int bits = 11; bits <= 17; ++bits)
    for (const int64_t delta : {-1, 0, 1}) EXPECT_TRUE(is_bijection((int64_t{1} << bits) + delta, 3)) << bits;
}

TEST(Order, ReachesSizesThatNoMemoryHolds) {
  const int64_t size = (int64_t{1} << 40) + 12345;
  const Order order(5, size);
  for (int64_t position = 0; position < 100; ++position) {
    EXPECT_GE(order.record_at(position), 0);
    EXPECT_LT(order.record_at(position), size);
  }
}

// The answers are the contract: changing one breaks every recorded run, and needs another kOrderVersion.
TEST(Order, GoldenVectors) {
  const auto first = [](uint64_t seed, int64_t size, int64_t position) {
    std::vector<int64_t> records(6);
    Order(seed, size).records(position, records);
    return records;
  };
  EXPECT_EQ(kOrderVersion, 6);
  EXPECT_EQ(first(0, 10, 0), (std::vector<int64_t>{8, 6, 1, 4, 0, 7}));
  EXPECT_EQ(first(0, 10, 7), (std::vector<int64_t>{5, 3, 2, 5, 2, 9}));
  EXPECT_EQ(first(7, 1000003, 1000000),
            (std::vector<int64_t>{12633, 457600, 434429, 712496, 204393, 507455}));
  EXPECT_EQ(first(7, int64_t{1} << 40, 0), (std::vector<int64_t>{428765989092, 418887831383, 491373848688,
                                                                 78701192046, 980680959403, 22742149982}));
}

TEST(Order, RangesEqualSinglePositions) {
  const Order order(3, 37);
  std::vector<int64_t> records(100);
  order.records(20, records);
  for (size_t i = 0; i < records.size(); ++i)
    EXPECT_EQ(records[i], order.record_at(20 + static_cast<int64_t>(i)));
}

TEST(Order, SeedsAndEpochsDiffer) {
  const int64_t size = 1000;
  const auto agreements = [&](const Permutation& a, const Permutation& b) {
    int64_t equal = 0;
    for (int64_t i = 0; i < size; ++i) equal += a(i) == b(i);
    return equal;
  };
  EXPECT_LT(agreements({1, 0, size}, {2, 0, size}), 10);
  EXPECT_LT(agreements({1, 0, size}, {1, 1, size}), 10);
}

TEST(Order, WithoutShufflingPositionsAreRecords) {
  const Order order(3, 5, false);
  EXPECT_EQ(order.record_at(0), 0);
  EXPECT_EQ(order.record_at(13), 3);
}

// Every record comes first equally often over the epochs, also for tiny sizes where a Feistel network is
// weakest.
TEST(Order, FirstRecordIsUniformOverEpochs) {
  for (const int64_t size : {2, 3, 5, 16}) {
    const int64_t epochs = 8000;
    std::vector<double> counts(static_cast<size_t>(size));
    for (int64_t epoch = 0; epoch < epochs; ++epoch)
      counts[static_cast<size_t>(Permutation(11, static_cast<uint64_t>(epoch), size)(0))] += 1;
    const double expected = static_cast<double>(epochs) / static_cast<double>(size);
    double chi2 = 0;
    for (const double count : counts) chi2 += (count - expected) * (count - expected) / expected;
    // Mean size - 1, deviation sqrt(2 (size - 1)); five deviations.
    EXPECT_LT(chi2, static_cast<double>(size - 1) + 5 * std::sqrt(2.0 * static_cast<double>(size - 1)) + 5)
        << size;
  }
}

TEST(Order, NeighboursAreUncorrelated) {
  const int64_t size = 100000;
  const Permutation permutation(21, 0, size);
  for (const int64_t lag : {1, 2, 7, 64}) {
    double sum = 0;
    for (int64_t i = 0; i + lag < size; ++i) {
      const double half = static_cast<double>(size) / 2;
      sum +=
          (static_cast<double>(permutation(i)) - half) * (static_cast<double>(permutation(i + lag)) - half);
    }
    const double variance = static_cast<double>(size) * static_cast<double>(size) / 12;
    EXPECT_LT(std::fabs(sum / static_cast<double>(size) / variance), 0.016) << lag;  // five deviations
  }
}

OrderShape shape_of(int64_t records, int64_t block, int64_t lanes, int64_t window) {
  return {.records = records, .block = block, .lanes = lanes, .window = window};
}

bool visits_all(const OrderShape& shape, uint64_t seed, int64_t epoch) {
  const EpochOrder order(seed, epoch, shape, Shuffle::kBlock);
  std::vector<bool> seen(static_cast<size_t>(shape.records));
  for (int64_t i = 0; i < shape.records; ++i) {
    const int64_t record = order(i);
    if (record < 0 || record >= shape.records || seen[static_cast<size_t>(record)]) return false;
    seen[static_cast<size_t>(record)] = true;
  }
  return true;
}

TEST(BlockOrder, VisitsEveryRecordOnceForEverySmallSize) {
  for (int64_t size = 1; size <= 4096; size += size < 600 ? 1 : 37)
    EXPECT_TRUE(visits_all(shape_of(size, 4, 4, 8), 3, size)) << size;
}

TEST(BlockOrder, VisitsEveryRecordOnceForEveryShape) {
  for (const int64_t block : {2, 16, 256})
    for (const int64_t lanes : {1, 4, 16})
      for (const int64_t window : {1, 8, 64})
        for (const int64_t size : {255, 4096, 4097, 30011})
          EXPECT_TRUE(visits_all(shape_of(size, block, lanes, window), 3, 1))
              << size << " " << block << " " << lanes << " " << window;
}

TEST(BlockOrderLong, VisitsEveryRecordOnce) {
  for (int64_t size = 1; size <= 4096; ++size) {
    EXPECT_TRUE(is_bijection(size, 0)) << size;
    for (const int64_t block : {2, 8, 64}) EXPECT_TRUE(visits_all(shape_of(size, block, 4, 8), 7, 2)) << size;
  }
  for (int bits = 12; bits <= 22; ++bits)
    for (const int64_t delta : {-1, 0, 1}) {
      EXPECT_TRUE(is_bijection((int64_t{1} << bits) + delta, 3)) << bits;
      EXPECT_TRUE(visits_all(shape_of((int64_t{1} << bits) + delta, 64, 16, 64), 5, 1)) << bits;
    }
}

std::set<int64_t> blocks_of_lane(const EpochOrder& order, int64_t lane, int64_t from, int64_t to) {
  std::set<int64_t> blocks;
  for (int64_t i = from; i < to; ++i) blocks.insert(order(4 * i + lane) / 16);
  return blocks;
}

TEST(BlockOrder, ALaneTakesItsBlocksFromOneWindow) {
  const EpochOrder order(1, 0, shape_of(1 << 16, 16, 4, 8), Shuffle::kBlock);
  // Lane 0 begins with a whole window of 8 blocks: 128 records.
  EXPECT_EQ(blocks_of_lane(order, 0, 0, 128).size(), 8U);
  // The windows of lane 1 end 2 blocks earlier.
  EXPECT_EQ(blocks_of_lane(order, 1, 0, 96).size(), 6U);
  EXPECT_EQ(blocks_of_lane(order, 1, 96, 96 + 128).size(), 8U);
  // 4 blocks would be too few to begin with: lane 2 takes them together with the 8 of the next window.
  EXPECT_EQ(blocks_of_lane(order, 2, 0, 192).size(), 12U);
}

TEST(BlockOrder, ARoundHasOneRecordOfEveryBlock) {
  const EpochOrder order(1, 0, shape_of(1 << 16, 16, 4, 8), Shuffle::kBlock);
  for (int64_t round = 0; round < 16; ++round)
    EXPECT_EQ(blocks_of_lane(order, 0, 8 * round, 8 * round + 8).size(), 8U) << round;
}

TEST(BlockOrder, BlocksOfOneRecordAreTheGlobalOrder) {
  const EpochOrder block(4, 2, shape_of(1000, 1, 16, 64), Shuffle::kBlock);
  const EpochOrder global(4, 2, shape_of(1000, 1, 16, 64), Shuffle::kGlobal);
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(block(i), global(i));
}

// As NeighboursAreUncorrelated, at every lag to 64, with the lanes and windows that jobs have.
TEST(BlockOrder, NeighboursAreUncorrelated) {
  const int64_t size = 500000;
  const EpochOrder order(21, 0, shape_of(size, 128, 16, 64), Shuffle::kBlock);
  std::vector<double> records(static_cast<size_t>(size));
  const double half = static_cast<double>(size) / 2;
  for (int64_t i = 0; i < size; ++i) records[static_cast<size_t>(i)] = static_cast<double>(order(i)) - half;
  for (size_t lag = 1; lag <= 64; ++lag) {
    double sum = 0;
    for (size_t i = 0; i + lag < records.size(); ++i) sum += records[i] * records[i + lag];
    EXPECT_LT(std::fabs(sum / static_cast<double>(size) / (half * half / 3)), 0.02) << lag;
  }
}

TEST(BlockOrder, GoldenVectors) {
  const auto first = [](uint64_t seed, const OrderShape& shape, int64_t position) {
    std::vector<int64_t> records(6);
    Order(seed, shape, Shuffle::kBlock).records(position, records);
    return records;
  };
  EXPECT_EQ(first(0, shape_of(100000, 16, 4, 8), 0),
            (std::vector<int64_t>{1821, 87533, 64902, 37997, 16656, 44173}));
  EXPECT_EQ(first(7, shape_of(1000003, 256, 16, 64), 1000000),
            (std::vector<int64_t>{23379, 23551, 23510, 892329, 89182, 545993}));
  EXPECT_EQ(first(7, shape_of(10000000000, 256, 16, 64), 9999999997),
            (std::vector<int64_t>{4337824888, 8909616853, 5988105747, 292732409, 6343905919, 5187541555}));
}

TEST(BlockOrder, StridesWalkTheSamePositions) {
  const Order order(3, shape_of(1000, 8, 4, 8), Shuffle::kBlock);
  std::vector<int64_t> records(50);
  order.records(900, records, 7);
  for (size_t i = 0; i < records.size(); ++i)
    EXPECT_EQ(records[i], order.record_at(900 + 7 * static_cast<int64_t>(i)));
}

TEST(BlockOrder, RefusesWhatIsNoPowerOfTwo) {
  EXPECT_THROW(Order(1, shape_of(10, 3, 4, 8), Shuffle::kBlock), UserError);
  EXPECT_THROW(Order(1, shape_of(10, 4, 0, 8), Shuffle::kBlock), UserError);
}

TEST(Order, RefusesEmptyData) { EXPECT_THROW(Order(1, 0), UserError); }

}  // namespace
}  // namespace lockstep
