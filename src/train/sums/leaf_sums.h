// LeafSums: the sums of a step over the leaves of the canonical tree.
//
// A worker adds each leaf's microbatches in index order, and leaves as the tree says (comm/leaf_stack.h);
// what is left are its partial sums. The workers' partial sums complete the tree: gradients and statistics by
// the exchange (train/sums/exchange.h), lists of rows by everybody merging everybody's
// (train/sums/row_exchange.h). The root then lies in slot 0 of every worker, with the same bits for any
// number of them; where workers own pieces of the buckets, of these alone.
//
// Everything here is put on the compute stream; the host waits in finish() alone, and only for other workers.
//
// Where gradients are compressed, leaves and sums are rounded as they are made (train/sums/node_codec.h), on
// one worker too; or leaves keep what they do not send (train/sums/leaf_residuals.h), and nothing of their
// gradients is added up before the worker's last leaf. Such a codec begins when so many steps as its warm-up
// has were applied; until then sums are exact. Statistics and lists of rows are neither.
//
// Gradients are handed over in buckets: as soon as backward of the worker's last microbatch has finished a
// bucket, its part of the worker's last leaf is merged and exchanged, while backward goes on.
#pragma once
#include <memory>
#include <vector>

#include "comm/leaf_stack.h"
#include "train/sums/buckets.h"
#include "train/sums/comm_profile.h"
#include "train/sums/exchange.h"
#include "train/sums/feedback_sums.h"
#include "train/sums/gradient_slots.h"
#include "train/sums/loss_totals.h"
#include "train/sums/node_codec.h"
#include "train/sums/reduce_options.h"
#include "train/sums/sum_tree.h"

namespace lockstep {

class LeafSums {
 public:
  // Without a group, this worker owns all leaves. `reach`: of devices with memory of their own.
  // `residuals`: of codecs with feedback, a flat buffer for each leaf of this worker.
  LeafSums(Backend& backend, const FlatLayout& layout, const std::vector<RowTable>& tables,
           const SumTree& tree, const ReduceOptions& options, Group* group,
           const DeviceReach* reach = nullptr, float* residuals = nullptr);

  const SumTree& tree() const { return tree_; }
  const Buckets& buckets() const { return buckets_; }
  GradientSlots& slots() { return slots_; }
  // The loss and the count of a slot, on the device.
  LossTotals& totals() { return totals_; }
  // The slot that the leaf at hand is summed in.
  int64_t slot() const { return stack_.next_slot(); }
  // Before the first leaf of a step, which will be the `applied`th that is applied, unless it is left out.
  void begin(int64_t step, int64_t applied) {
    leaves_out_ = feedback_ && applied > warmup_;
    if (leaves_out_) feedback_->begin(step, applied);
  }
  // To be told while the last microbatch is added to its slot: how many bytes of the slot are final. Where
  // nothing is exchanged there is nothing to tell.
  bool wants_ready(int64_t microbatch) const { return exchange_ != nullptr && tree_.is_last(microbatch); }
  void ready(int64_t bytes);
  // The leaf at hand is complete.
  void push();
  // Where parts of the elements are complete at different times (the stages of a pipeline): each has a stack
  // of its own. `loss` is the part whose pushes add up the totals; -1: another worker has them.
  void in_parts(std::vector<Slice> parts, int loss);
  int64_t slot(size_t part) const { return part_stacks_[part].next_slot(); }
  void push(size_t part);
  // All leaves of all parts are complete: hands everything over.
  void exchange_parts();

  // Completes the tree. Begin again with the next step. The workers' requests are added up on the way; one of
  // them at most should have any.
  int64_t finish(int64_t request = 0);

  // Of what gradients are summed in, and of what is under way in coded form.
  int64_t bytes() const {
    return slots_.bytes() + (coded_ ? coded_->bytes() : 0) + (feedback_ ? feedback_->bytes() : 0);
  }
  const CommProfile& profile() const { return profile_; }
  void restart_profile() { profile_.restart(); }
  double comm_seconds() const { return comm_seconds_; }  // spent waiting so far

 private:
  bool completes(LeafRange leaf) const { return leaf.end == tree_.own().end; }
  LeafRange next_leaf(const LeafStack& stack) const;
  void merge_bucket(Slice bucket);
  // Some elements of a leaf, which lie in slot `last`, are complete: adds up slots [first, last], from the
  // last to the first, rounded as nodes of the tree are where gradients are; or gives them to the leaf's
  // residual.
  void merge(int64_t leaf, int64_t first, int64_t last, Slice elements);
  void make_residuals(Backend& backend, const ReduceOptions& options, float* memory);
  void start_bucket(int64_t bucket);
  // For the buckets that are under way.
  void wait_for_buckets();
  // For what has not come with them.
  void finish_feedback();
  int64_t exchange_totals(int64_t request);

  FlatLayout layout_;
  SumTree tree_;
  Group* group_;
  Buckets buckets_;
  bool owned_;
  std::unique_ptr<Exchange> exchange_;  // null where every worker goes on with what it has
  std::unique_ptr<NodeCodec> codec_;    // null unless it rounds gradients
  std::unique_ptr<CodedExchange> coded_;
  std::unique_ptr<LeafResiduals> residuals_;  // null unless it leaves some of them out
  std::unique_ptr<FeedbackSums> feedback_;
  int64_t warmup_;
  bool leaves_out_ = false;  // some gradients of this step, as feedback_ says
  GradientSlots slots_;
  LossTotals totals_;
  LeafStack stack_;
  std::vector<Slice> parts_;
  std::vector<LeafStack> part_stacks_;
  int loss_part_ = -1;
  int64_t merged_ = 0;  // buckets of the last leaf that are merged
  struct UnderWay {
    int64_t bucket = 0;
    Group::Ticket ticket;
  };
  std::vector<UnderWay> under_way_;
  CommProfile profile_;
  double comm_seconds_ = 0;
};

}  // namespace lockstep
