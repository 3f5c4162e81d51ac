#include "comm/leaf_split.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(LeafSplit, AlignedSplitsSendOnePartialSum) {
  for (const int ranks : {1, 2, 4, 8, 16}) {
    const LeafSplit split = LeafSplit::search(16, ranks);
    EXPECT_EQ(split.max_partials(), 1) << split.text();
    EXPECT_EQ(split.imbalance(), 1.0) << split.text();
  }
}

TEST(LeafSplit, CutOffSubtreeIsOnePartialSum) {
  const LeafSplit split(7, {4, 7});
  EXPECT_EQ(split.partials(1), (std::vector<LeafRange>{{4, 7}}));
}

TEST(LeafSplit, UnalignedRangeIsCutIntoMaximalSubtrees) {
  const LeafSplit split(16, {6, 11, 16});
  EXPECT_EQ(split.partials(0), (std::vector<LeafRange>{{0, 4}, {4, 6}}));
  EXPECT_EQ(split.partials(1), (std::vector<LeafRange>{{6, 8}, {8, 10}, {10, 11}}));
  EXPECT_EQ(split.partials(2), (std::vector<LeafRange>{{11, 12}, {12, 16}}));
}

TEST(LeafSplit, SearchTradesNothingForFewerPartialSums) {
  EXPECT_EQ(LeafSplit::search(16, 3).text(), "16 leaves on 3 ranks: 4 6 6, partial sums 1 2 2");
  // Where a buffer costs as much as three leaves, one rank more to do is worth fewer buffers.
  const LeafSplit few = LeafSplit::search(64, 3, 3.0);
  EXPECT_EQ(few.text(), "64 leaves on 3 ranks: 16 24 24, partial sums 1 2 2");
  EXPECT_DOUBLE_EQ(few.imbalance(), 1.125);
  const LeafSplit even = LeafSplit::search(64, 7, 1.0);
  EXPECT_LE(even.max_partials(), 3);
  EXPECT_DOUBLE_EQ(even.imbalance(), 70.0 / 64.0);
}

// No cut of the leaves beats the one that the search finds.
TEST(LeafSplit, SearchFindsTheBestOfAllSplits) {
  constexpr double kPartialCost = 0.125;
  for (int64_t leaves = 1; leaves <= 12; ++leaves) {
    std::vector<std::pair<double, int64_t>> best(static_cast<size_t>(leaves) + 1, {1e9, 0});
    for (int64_t cuts = 0; cuts < (int64_t{1} << (leaves - 1)); ++cuts) {
      std::vector<int64_t> ends;
      for (int64_t leaf = 1; leaf < leaves; ++leaf)
        if ((cuts >> (leaf - 1)) & 1) ends.push_back(leaf);
      ends.push_back(leaves);
      const LeafSplit split(leaves, ends);
      double slowest = 0;
      for (int rank = 0; rank < split.ranks(); ++rank)
        slowest = std::max(slowest, static_cast<double>(split.range(rank).size()) +
                                        kPartialCost * static_cast<double>(split.partials(rank).size() - 1));
      best[ends.size()] = std::min(best[ends.size()], {slowest, split.total_partials()});
    }
    for (int ranks = 1; ranks <= leaves; ++ranks) {
      const LeafSplit found = LeafSplit::search(leaves, ranks, kPartialCost);
      double slowest = 0;
      for (int rank = 0; rank < ranks; ++rank)
        slowest = std::max(slowest, static_cast<double>(found.range(rank).size()) +
                                        kPartialCost * static_cast<double>(found.partials(rank).size() - 1));
      EXPECT_EQ(std::pair(slowest, found.total_partials()), best[static_cast<size_t>(ranks)]) << found.text();
    }
  }
}

TEST(LeafSplit, MoreRanksThanLeavesSaysWhatToSet) {
  try {
    LeafSplit::search(4, 5);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "5 workers cannot share 4 leaves; set strategy.leaves to 8 or use at most 4 workers");
  }
}

}  // namespace
}  // namespace lockstep
