// ScatteredSource: every record once, ranges that are samples, and nothing else changed.
#include <gtest/gtest.h>

#include <set>

#include "data/source/wrapped_source.h"
#include "data/synthetic/patterns.h"

namespace lockstep {
namespace {

TEST(Scattered, EveryRecordHasOneOtherNumber) {
  const auto source =
      std::make_shared<PatternTokens>(PatternTokensOptions{.records = 100, .seq = 4, .vocab = 9});
  const ScatteredSource scattered(source);
  ASSERT_EQ(scattered.size(), 100);
  std::set<std::string> places;
  int64_t late = 0;  // of the last tenth, those from the second half
  for (int64_t i = 0; i < 100; ++i) places.insert(scattered.describe(i));
  EXPECT_EQ(places.size(), 100u);
  std::set<std::string> second_half;
  for (int64_t i = 50; i < 100; ++i) second_half.insert(source->describe(i));
  for (int64_t i = 80; i < 100; ++i) late += second_half.contains(scattered.describe(i)) ? 1 : 0;
  EXPECT_GT(late, 3);
  EXPECT_LT(late, 17);
  EXPECT_NE(scattered.fingerprint(), source->fingerprint());
}

TEST(Scattered, RowsAreThoseOfThePlace) {
  const auto source =
      std::make_shared<PatternTokens>(PatternTokensOptions{.records = 10, .seq = 4, .vocab = 9});
  const ScatteredSource scattered(source);
  int64_t place = 0;
  while (source->describe(place) != scattered.describe(3)) ++place;
  Batch found(scattered.columns(), 2), expected(source->columns(), 2);
  scattered.fill(std::vector<int64_t>{3, kNoRecord}, found);
  source->fill(std::vector<int64_t>{place, kNoRecord}, expected);
  EXPECT_TRUE(std::equal(found.values<int32_t>(0).begin(), found.values<int32_t>(0).end(),
                         expected.values<int32_t>(0).begin()));
}

}  // namespace
}  // namespace lockstep
