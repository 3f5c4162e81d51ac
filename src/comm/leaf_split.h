// Which rank owns which leaves of the canonical tree, and what it sends.
//
// A rank owns a contiguous range of leaves and contributes one partial sum per maximal aligned subtree of its
// range: one buffer where the split is aligned (powers of two), several where it is not. An even split of 64
// leaves over 3 ranks needs up to 5 buffers a rank; 16 + 24 + 24 needs two. The search below finds such
// splits. It only moves work: no split changes a bit of the root.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/leaf_range.h"

namespace lockstep {

class LeafSplit {
 public:
  // Rank r owns the leaves from ends[r-1] (0 for the first) to ends[r]. Every rank owns one at least.
  LeafSplit(int64_t leaves, const std::vector<int64_t>& ends);

  // One leaf each: the tree over the ranks themselves.
  static LeafSplit one_each(int ranks);
  // The split whose slowest rank has least to do, and among those one with the fewest partial sums in all. A
  // partial sum beyond the first costs as much as `partial_cost` leaves. UserError with more ranks than
  // leaves.
  static LeafSplit search(int64_t leaves, int ranks, double partial_cost = 0.125);

  int64_t leaves() const { return leaves_; }
  int ranks() const { return static_cast<int>(ranges_.size()); }
  LeafRange range(int rank) const { return ranges_.at(static_cast<size_t>(rank)); }
  // The subtrees that a rank sums by itself, left to right.
  const std::vector<LeafRange>& partials(int rank) const { return partials_.at(static_cast<size_t>(rank)); }
  int64_t max_partials() const;
  int64_t total_partials() const;
  // The most leaves of a rank over the mean: 1 when all have equally much to do.
  double imbalance() const;
  // "16 leaves on 3 ranks: 4 6 6, partial sums 1 2 2"
  std::string text() const;

 private:
  int64_t leaves_;
  std::vector<LeafRange> ranges_;
  std::vector<std::vector<LeafRange>> partials_;
};

}  // namespace lockstep
