// LeafSums: the sums of a step over the leaves of the canonical tree, on one worker or several.
//
// A worker owns a contiguous range of the leaves. It adds each leaf's microbatches in index order, and leaves
// as the tree says (comm/leaf_stack.h); what is left are its partial sums. The workers' partial sums complete
// the tree: gradients and statistics by all_reduce, lists of rows by everybody merging everybody's. The root
// then lies in slot 0 of every worker, with the same bits for any number of them.
#pragma once
#include <memory>
#include <vector>

#include "comm/group.h"
#include "comm/leaf_stack.h"
#include "train/gradient_slots.h"

namespace lockstep {

struct SumTotals {
  float loss = 0;
  int64_t count = 0;
};

class LeafSums {
 public:
  // Without a group, this worker owns all leaves.
  LeafSums(Backend& backend, const FlatLayout& layout, const std::vector<RowTable>& tables, int64_t leaves,
           int64_t microbatches_per_leaf, Group* group);

  LeafRange own() const { return own_; }
  GradientSlots& slots() { return slots_; }
  // The slot that the leaf at hand is summed in.
  int64_t slot() const { return stack_.next_slot(); }
  // One microbatch of the leaf at hand: written to the slot, or added to it.
  void add(float loss, int64_t count, bool first);
  // The leaf at hand is complete.
  void push();
  // Completes the tree. Begin again with the next step.
  SumTotals finish();

  double comm_seconds() const { return comm_seconds_; }  // spent in finish so far

 private:
  void merge(int64_t into, int64_t from);
  void reduce();
  void reduce_lists();
  std::vector<std::vector<RowList>> exchange_lists(int rank);

  Backend& backend_;
  FlatLayout layout_;
  int64_t leaves_;
  int64_t microbatches_per_leaf_;
  Group* group_;
  LeafRange own_;
  GradientSlots slots_;
  LeafStack stack_;
  std::vector<float> losses_;  // per slot
  std::vector<int64_t> counts_;
  double comm_seconds_ = 0;
};

}  // namespace lockstep
