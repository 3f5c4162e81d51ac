// ExactlyOnce finds what is missing and what is repeated; ShuffleReport tells no order from a random one.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/order/order.h"
#include "data/order/shuffle_report.h"

namespace lockstep {
namespace {

ShuffleReport report_of(Shuffle shuffle, int64_t records, int64_t block = 64) {
  const OrderShape shape{.records = records, .block = block};
  std::vector<int64_t> order(static_cast<size_t>(records));
  Order(7, shape, shuffle).records(0, order);
  return report_shuffle({order, 0, records, shape.block, 256});
}

TEST(ExactlyOnce, FindsWhatIsMissingAndRepeated) {
  ExactlyOnce read(130);
  for (int64_t record = 0; record < 130; ++record)
    if (record != 64) read.add(record);
  EXPECT_EQ(read.missing(), 1);
  EXPECT_EQ(read.repeated(), 0);
  EXPECT_FALSE(read.holds());
  read.add(129);
  EXPECT_EQ(read.repeated(), 1);
  EXPECT_EQ(read.missing(), 1);
  read.add(64);
  EXPECT_EQ(read.missing(), 0);
  EXPECT_FALSE(read.holds()) << "129 was read twice";
  EXPECT_THROW(read.add(130), InternalError);
  EXPECT_THROW(read.add(-1), InternalError);
}

TEST(ExactlyOnce, HoldsForAnEpoch) {
  ExactlyOnce read(1000);
  std::vector<int64_t> order(1000);
  Order(7, 1000).records(0, order);
  for (const int64_t record : order) read.add(record);
  EXPECT_TRUE(read.holds());
}

TEST(ShuffleReport, RecordsAsTheyLie) {
  const ShuffleReport report = report_of(Shuffle::kNone, 1 << 16);
  EXPECT_GT(report.correlation[0], 0.99);
  EXPECT_DOUBLE_EQ(report.displacement, 0);
  EXPECT_NEAR(report.same_block[0], 63.0 / 64, 1e-4);
  EXPECT_EQ(report.least_blocks, 4);
  EXPECT_EQ(report.most_blocks, 4);
}

TEST(ShuffleReport, AllRecordsMixed) {
  const ShuffleReport report = report_of(Shuffle::kGlobal, 1 << 16);
  EXPECT_EQ(report.correlation.size(), 64U);
  EXPECT_LT(std::abs(report.correlation[static_cast<size_t>(report.worst_lag() - 1)]), 0.02);
  EXPECT_NEAR(report.displacement, 1.0 / 3, 0.02);
  EXPECT_NEAR(report.mean_blocks, report.expected_blocks, 0.02 * report.expected_blocks);
  EXPECT_NEAR(report.same_block[15], 1.0 / 1024, 0.0005);
}

// A round has one record of each block of a window, so that a step of 16 rounds has more blocks than one of a
// random order.
TEST(ShuffleReport, BlocksMixedInWindows) {
  const ShuffleReport report = report_of(Shuffle::kBlock, 1 << 16);
  EXPECT_LT(report.same_block[15], 0.001);
  EXPECT_NEAR(report.displacement, 1.0 / 3, 0.02);
  EXPECT_GT(report.mean_blocks, report.expected_blocks);
}

// As far as a correlation can be measured at all: that of N independent records is 1 / sqrt(N) off, by which
// it varies over 64 lags up to three times that.
TEST(ShuffleReport, NoLagIsCorrelatedWhateverTheSize) {
  for (const int64_t block : {2, 16, 64, 256})
    for (const int64_t records : {1 << 16, 1 << 16 | 4321, 1 << 17, 200003, 1 << 18}) {
      const ShuffleReport report = report_of(Shuffle::kBlock, records, block);
      const auto worst = static_cast<size_t>(report.worst_lag() - 1);
      EXPECT_LT(std::abs(report.correlation[worst]), 0.02)
          << records << " records in blocks of " << block << ", lag " << worst + 1;
    }
}

TEST(ShuffleReport, FewRecords) {
  const std::vector<int64_t> records = {1, 0};
  const ShuffleReport report = report_shuffle({records, 0, 2, 1, 64});
  EXPECT_EQ(report.correlation.size(), 1U);
  EXPECT_EQ(report.least_blocks, 2);
}

}  // namespace
}  // namespace lockstep
