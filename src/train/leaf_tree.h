// The canonical tree of sums: leaves are pushed in index order, equal-sized neighbours are merged at once.
//
// Merging the two youngest partial sums while they cover equally many leaves is the binary tree over the
// indices; what is left at the end is merged from the youngest back, where a lone child has passed through
// unchanged. At most log2(V) + 1 partial sums are alive. The order depends on V alone, never on who computes
// a leaf.
#pragma once
#include <cstdint>
#include <vector>

namespace lockstep {

// How many partial sums are alive at most with that many leaves.
int64_t leaf_tree_depth(int64_t leaves);

class LeafTree {
 public:
  // The slot where the next leaf's sum goes: 0 is the oldest.
  int64_t next_slot() const { return static_cast<int64_t>(sizes_.size()); }

  // Says that next_slot() now holds a leaf. Calls merge(into, from) for every pair that is complete.
  template <typename Merge>
  void push(const Merge& merge) {
    sizes_.push_back(1);
    while (sizes_.size() >= 2 && sizes_[sizes_.size() - 2] == sizes_.back()) merge_top(merge);
  }
  // Merges what is left into slot 0.
  template <typename Merge>
  void finish(const Merge& merge) {
    while (sizes_.size() >= 2) merge_top(merge);
    sizes_.clear();
  }

 private:
  template <typename Merge>
  void merge_top(const Merge& merge) {
    const auto from = static_cast<int64_t>(sizes_.size()) - 1;
    merge(from - 1, from);
    sizes_[sizes_.size() - 2] += sizes_.back();
    sizes_.pop_back();
  }
  std::vector<int64_t> sizes_;  // leaves covered by each slot
};

}  // namespace lockstep
