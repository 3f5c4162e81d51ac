#include "train/sums/buckets.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

constexpr int64_t kMiB = 1 << 20;

FlatLayout layout_of(int64_t bytes) {
  FlatLayout layout;
  layout.add("w", {bytes / 4});
  return layout;
}

TEST(Buckets, CoverEverySumOnce) {
  FlatLayout layout = layout_of(3 * kMiB + 4096);
  layout.add_statistic("mean", {5000});
  const Buckets buckets(layout, 100'000);
  int64_t end = 0;
  for (int64_t i = 0; i < buckets.count(); ++i) {
    EXPECT_EQ(buckets[i].begin, end);
    EXPECT_EQ(buckets[i].begin % kFlatBlock, 0);
    EXPECT_GT(buckets[i].size(), 0);
    end = buckets[i].end;
  }
  EXPECT_EQ(end, layout.sums_numel());
  EXPECT_EQ(buckets.bytes() % (kFlatBlock * 4), 0);
  EXPECT_GE(buckets.bytes(), 100'000);
}

// Gradients of two bytes, statistics of four: none lies in a bucket with the other, and none is larger.
TEST(Buckets, HaveOneTypeEach) {
  FlatLayout layout(DType::kBF16);
  layout.add("w", {50'000});
  layout.add_statistic("mean", {5000});
  EXPECT_EQ(layout.sums_bytes(), 2 * layout.numel() + 4 * layout.statistics_numel());
  EXPECT_EQ(layout.sums_offset(layout.numel() + 3), 2 * layout.numel() + 12);
  const Buckets buckets(layout, 10'000);
  int64_t end = 0;
  for (int64_t i = 0; i < buckets.count(); ++i) {
    EXPECT_EQ(buckets[i].begin, end);
    end = buckets[i].end;
    EXPECT_EQ(layout.sums_dtype(buckets[i].begin), layout.sums_dtype(end - 1));
    EXPECT_LE(layout.sums_offset(end) - layout.sums_offset(buckets[i].begin), buckets.bytes());
  }
  EXPECT_EQ(end, layout.sums_numel());
}

TEST(Buckets, AreAsManyAsHideMostOfTheTransfer) {
  EXPECT_EQ(Buckets(layout_of(64 * kMiB), 0).count(), 32);
  EXPECT_EQ(Buckets(layout_of(64 * kMiB), 0).bytes(), 2 * kMiB);
}

TEST(Buckets, AreNeitherTooSmallForANetworkNorTooLarge) {
  EXPECT_EQ(Buckets(layout_of(2 * kMiB), 0).bytes(), kMiB / 2);
  EXPECT_EQ(Buckets(layout_of(4096 * kMiB), 0).bytes(), 16 * kMiB);
  EXPECT_EQ(Buckets(layout_of(4096), 0).count(), 1);
}

}  // namespace
}  // namespace lockstep
