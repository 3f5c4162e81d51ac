// SumTree: which microbatches of a step are whose, and the tree that their sums make.
//
// canonical: V leaves of M/V microbatches each. A worker owns a contiguous range of them and has one partial
// sum per maximal aligned subtree of its range (comm/leaf_split.h); the bits do not depend on who owns what.
// fast: the workers themselves are the leaves. Each adds up the same microbatches into a single sum, so that
// less is held and sent, and the bits depend on how many they are.
// In rounds (ZeRO-2) workers take leaves in turns, the canonical ones: leaf r N + w is worker w's in round r,
// so that the leaves of a round are neighbours, and whoever owns an element adds them as one worker would.
// Where several groups of workers own everything, each takes the leaves of a range so.
#pragma once
#include <optional>
#include <vector>

#include "comm/group.h"

namespace lockstep {

class SumTree {
 public:
  // Without a group one worker owns everything.
  SumTree(int64_t leaves, int64_t microbatches, SumOrder order, const Group* group);
  // Of so many workers, of which this is one, who take the leaves of a range in turns.
  struct Turns {
    LeafRange leaves;
    int64_t workers = 1;
    int64_t rank = 0;
  };
  static SumTree in_rounds(int64_t leaves, int64_t microbatches, const Group& group, const Turns& turns);
  // That a worker takes in turns.
  static int64_t leaves_in_rounds(int64_t leaves, int64_t workers, int64_t rank) {
    return (leaves - rank + workers - 1) / workers;
  }

  SumOrder order() const { return order_; }
  int64_t leaves() const { return leaves_; }
  // Of this worker. Microbatches are counted over the whole step.
  LeafRange own() const { return own_; }  // in rounds: their numbers
  int64_t microbatches_per_leaf() const { return per_leaf_; }
  int64_t microbatches() const { return own_.size() * per_leaf_; }
  // The one that is worked on as the index-th, and which of them one is; nothing of another worker's.
  int64_t microbatch(int64_t index) const;
  std::optional<int64_t> index_of(int64_t microbatch) const;
  bool begins_leaf(int64_t microbatch) const { return (microbatch - first_) % per_leaf_ == 0; }
  bool ends_leaf(int64_t microbatch) const { return (microbatch - first_ + 1) % per_leaf_ == 0; }
  bool is_last(int64_t microbatch) const { return microbatch == this->microbatch(microbatches() - 1); }

  struct Partial {
    LeafRange leaves;
    int64_t microbatches = 0;
  };
  // What a worker is left with, in the order of leaves.
  std::vector<Partial> partials(int rank) const;

 private:
  SumOrder order_;
  const Group* group_;
  int64_t microbatches_per_leaf_;  // of the canonical tree
  int64_t leaves_;
  LeafRange own_;
  int64_t first_ = 0;
  int64_t per_leaf_ = 1;
  int64_t stride_ = 1;  // from one leaf of this worker to the next
};

}  // namespace lockstep
