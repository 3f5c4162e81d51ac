#include "train/bucket_choice.h"

#include <gtest/gtest.h>

#include "comm/ranks_testing.h"

namespace lockstep {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(BucketChoice, IsTheGeometricMeanOfAllAndOfWhatALatencyIsWorth) {
  // A latency of 100 us on 10 GB/s is worth 1 MB.
  const int64_t bucket = best_bucket(100'000'000, 1e-4, 1e10, 2);
  EXPECT_NEAR(static_cast<double>(bucket), 1e7, 4096);
  EXPECT_EQ(bucket % 4096, 0);
}

TEST(BucketChoice, IsNeitherAboveAllNorTooSmallToDealOut) {
  EXPECT_EQ(best_bucket(kMiB, 1, 1e10, 2), kMiB);
  EXPECT_EQ(best_bucket(64 * kMiB, 1e-9, 1e6, 16), 16 * 8 * 4096);
}

TEST(BucketChoice, EverybodyGetsTheSame) {
  std::vector<BucketChoice> choices(3);
  testing::on_threads(LeafSplit::search(8, 3), [&](Group& group) {
    choices[static_cast<size_t>(group.rank())] = measure_buckets(group, 8 * kMiB, SumOrder::kCanonical);
  });
  EXPECT_GT(choices[0].latency, 0);
  EXPECT_GT(choices[0].bytes_per_second, 0);
  for (const BucketChoice& choice : choices) EXPECT_EQ(choice.bytes, choices[0].bytes);
  EXPECT_EQ(choices[0].count(), (8 * kMiB + choices[0].bytes - 1) / choices[0].bytes);
}

TEST(BucketChoice, SmallGradientsGoInOne) {
  testing::on_threads(LeafSplit::one_each(2), [&](Group& group) {
    EXPECT_EQ(measure_buckets(group, 5000, SumOrder::kCanonical).count(), 1);
  });
}

}  // namespace
}  // namespace lockstep
