#include "train/sums/sum_tree.h"

#include "base/error.h"

namespace lockstep {

SumTree::SumTree(int64_t leaves, int64_t microbatches, SumOrder order, const Group* group)
    : order_(order),
      group_(group),
      microbatches_per_leaf_(microbatches / leaves),
      leaves_(leaves),
      own_{0, leaves},
      per_leaf_(microbatches_per_leaf_) {
  LOCKSTEP_CHECK(microbatches % leaves == 0, "{} microbatches in {} leaves", microbatches, leaves);
  if (group != nullptr) {
    LOCKSTEP_CHECK(group->split().leaves() == leaves, "a group over {} leaves for {}",
                   group->split().leaves(), leaves);
    own_ = group->split().range(group->rank());
  }
  first_ = own_.begin * microbatches_per_leaf_;
  if (order == SumOrder::kCanonical) return;
  per_leaf_ = own_.size() * microbatches_per_leaf_;
  const int64_t rank = group == nullptr ? 0 : group->rank();
  own_ = {rank, rank + 1};
  leaves_ = group == nullptr ? 1 : group->size();
}

SumTree SumTree::in_rounds(int64_t leaves, int64_t microbatches, const Group& group, const Turns& turns) {
  SumTree tree(leaves, microbatches, SumOrder::kCanonical, &group);
  tree.own_ = {0, leaves_in_rounds(turns.leaves.size(), turns.workers, turns.rank)};
  tree.first_ = (turns.leaves.begin + turns.rank) * tree.per_leaf_;
  tree.stride_ = turns.workers;
  return tree;
}

int64_t SumTree::microbatch(int64_t index) const {
  return first_ + index / per_leaf_ * stride_ * per_leaf_ + index % per_leaf_;
}

std::optional<int64_t> SumTree::index_of(int64_t microbatch) const {
  const int64_t leaf = (microbatch - first_) / per_leaf_;
  if (microbatch < first_ || leaf % stride_ != 0) return std::nullopt;
  const int64_t index = leaf / stride_ * per_leaf_ + (microbatch - first_) % per_leaf_;
  return index < microbatches() ? std::optional(index) : std::nullopt;
}

std::vector<SumTree::Partial> SumTree::partials(int rank) const {
  if (group_ == nullptr) return {{own_, microbatches()}};
  const LeafSplit& split = group_->split();
  if (order_ == SumOrder::kFast)
    return {{{rank, rank + 1}, split.range(rank).size() * microbatches_per_leaf_}};
  std::vector<Partial> all;
  for (const LeafRange& range : split.partials(rank))
    all.push_back({range, range.size() * microbatches_per_leaf_});
  return all;
}

}  // namespace lockstep
