// Splits by entity and down-sampling: shares as asked, nothing on both sides, golden values.
#include "data/order/selection.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(EntitySplit, GivesThePartsTheirShares) {
  const EntitySplit split(3, {0.9, 0.08, 0.02});
  std::vector<int64_t> counts(3);
  for (int64_t i = 0; i < 20000; ++i)
    ++counts[static_cast<size_t>(split.part_of("card-" + std::to_string(i)))];
  EXPECT_NEAR(static_cast<double>(counts[0]), 18000, 5 * 43);
  EXPECT_NEAR(static_cast<double>(counts[2]), 400, 5 * 20);
}

TEST(EntitySplit, GoldenValues) {
  EXPECT_EQ(entity_hash(1, "card-7"), 3544567091976162723u);
  EXPECT_EQ(entity_hash(1, int64_t{7}), 8011311089800139710u);
}

TEST(EntitySplit, RefusesSharesThatDoNotSumToOne) {
  EXPECT_THROW(EntitySplit(1, {0.5, 0.4}), UserError);
  EXPECT_THROW(EntitySplit(1, {1.5, -0.5}), UserError);
}

TEST(DownSample, KeepsAShareAndRestoresItsSum) {
  const DownSample sample(3, 0.05);
  int64_t kept = 0;
  for (int64_t record = 0; record < 100000; ++record) kept += sample.keeps(record);
  EXPECT_NEAR(static_cast<double>(kept), 5000, 5 * 69);
  EXPECT_FLOAT_EQ(sample.weight(), 20);
  const DownSample all(3, 1);
  for (int64_t record = 0; record < 1000; ++record) EXPECT_TRUE(all.keeps(record));
}

}  // namespace
}  // namespace lockstep
