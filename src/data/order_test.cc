// The order of records: a bijection for every size, golden vectors, and the statistics of a good shuffle.
#include "data/order.h"

#include <gtest/gtest.h>

#include <cmath>
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
  EXPECT_EQ(kOrderVersion, 1);
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

TEST(Order, RefusesEmptyData) { EXPECT_THROW(Order(1, 0), UserError); }

}  // namespace
}  // namespace lockstep
