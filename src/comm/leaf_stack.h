// Sums in the order of the canonical tree, from any leaf on.
//
// Leaves, or subtrees that somebody else has summed, are pushed from left to right; two siblings are merged
// as soon as both are there. Pushing the leaves of one rank leaves its maximal aligned subtrees, which are
// what it sends; pushing these of all ranks leaves the root. The order of additions is the same for any way
// in which the leaves are dealt out. At most log2(V) + 1 sums are alive where a range begins at an aligned
// leaf, twice that elsewhere.
#pragma once
#include <span>
#include <vector>

#include "comm/leaf_range.h"

namespace lockstep {

class LeafStack {
 public:
  explicit LeafStack(int64_t leaves) : leaves_(leaves) {}

  // The slot where the next sum goes: 0 is the leftmost.
  int64_t next_slot() const { return static_cast<int64_t>(subtrees_.size()); }

  // Says that next_slot() now holds the sum over `subtree`. Calls merge(into, from) for every pair that is
  // complete: slot `into` then holds the sum of both.
  template <typename Merge>
  void push(LeafRange subtree, const Merge& merge) {
    subtrees_.push_back(subtree);
    while (subtrees_.size() >= 2 &&
           are_siblings(subtrees_[subtrees_.size() - 2], subtrees_.back(), leaves_)) {
      const auto from = next_slot() - 1;
      merge(from - 1, from);
      subtrees_[subtrees_.size() - 2].end = subtrees_.back().end;
      subtrees_.pop_back();
    }
  }

  // What the slots hold, left to right.
  std::span<const LeafRange> subtrees() const { return subtrees_; }
  void clear() { subtrees_.clear(); }

 private:
  int64_t leaves_;
  std::vector<LeafRange> subtrees_;
};

// How many slots summing these leaves takes.
inline int64_t stack_depth(LeafRange range, int64_t leaves) {
  LeafStack stack(leaves);
  int64_t most = 0;
  for (int64_t leaf = range.begin; leaf < range.end; ++leaf) {
    most = std::max(most, stack.next_slot() + 1);
    stack.push({leaf, leaf + 1}, [](int64_t, int64_t) {});
  }
  return most;
}

}  // namespace lockstep
