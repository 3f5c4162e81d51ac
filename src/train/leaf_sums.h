// LeafSums: the sums of a step over the leaves of the canonical tree, on one worker or several.
//
// A worker adds each leaf's microbatches in index order, and leaves as the tree says (comm/leaf_stack.h);
// what is left are its partial sums. The workers' partial sums complete the tree: gradients and statistics by
// all_reduce, lists of rows by everybody merging everybody's. The root then lies in slot 0 of every worker,
// with the same bits for any number of them.
//
// Gradients are reduced in buckets: as soon as backward of the worker's last microbatch has finished a
// bucket, its part of the worker's last leaf is merged and the group sums it, while backward goes on.
#pragma once
#include <memory>
#include <vector>

#include "comm/leaf_stack.h"
#include "train/bucket_choice.h"
#include "train/gradient_slots.h"
#include "train/reduce_options.h"
#include "train/sum_tree.h"

namespace lockstep {

struct SumTotals {
  float loss = 0;
  int64_t count = 0;
  int64_t request = 0;
};

class LeafSums {
 public:
  // Without a group, this worker owns all leaves.
  LeafSums(Backend& backend, const FlatLayout& layout, const std::vector<RowTable>& tables,
           const SumTree& tree, const ReduceOptions& options, Group* group);

  const SumTree& tree() const { return tree_; }
  const BucketChoice& buckets() const { return buckets_; }
  GradientSlots& slots() { return slots_; }
  // The slot that the leaf at hand is summed in.
  int64_t slot() const { return stack_.next_slot(); }
  // To be told while the last microbatch is added to its slot: how many bytes of the slot are final. Without
  // a group there is nothing to tell.
  bool wants_ready(int64_t microbatch) const { return group_ != nullptr && tree_.is_last(microbatch); }
  void ready(int64_t bytes);
  // One microbatch of the leaf at hand: written to the slot, or added to it.
  void add(float loss, int64_t count, bool first);
  // The leaf at hand is complete.
  void push();
  // Completes the tree. Begin again with the next step. The workers' requests are added up on the way; one of
  // them at most should have any.
  SumTotals finish(int64_t request = 0);

  double comm_seconds() const { return comm_seconds_; }  // spent in finish so far, waiting

 private:
  bool completes(LeafRange leaf) const { return leaf.end == tree_.own().end; }
  LeafRange next_leaf() const;
  void merge_bucket(Slice bucket);
  Reduction reduction_of(Slice bucket, std::vector<void*>& sums);
  void reduce_rest();
  void reduce_lists();
  std::vector<std::vector<RowList>> exchange_lists(int rank);

  Backend& backend_;
  FlatLayout layout_;
  SumTree tree_;
  ReduceOptions options_;
  Group* group_;
  BucketChoice buckets_;
  GradientSlots slots_;
  LeafStack stack_;
  std::vector<float> losses_;  // per slot
  struct Counts {
    int64_t count = 0;
    int64_t request = 0;
  };
  std::vector<Counts> counts_;
  int64_t merged_ = 0;  // elements of the last leaf that are merged
  Slice last_bucket_;   // which nothing is left to hide
  std::vector<Group::Ticket> tickets_;
  double comm_seconds_ = 0;
};

}  // namespace lockstep
