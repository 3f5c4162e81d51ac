// RoundSums: the sums of a step where a worker keeps of each bucket nothing but the piece that it owns
// (ZeRO-2).
//
// Workers take the leaves in turns (SumTree::in_rounds). In each round every one of them sums one leaf; as
// soon as backward of its last microbatch has finished a bucket, everybody's piece of it goes to its owner,
// who adds up what comes in the order of leaves: by the stack that one worker has (comm/leaf_stack.h), over
// its piece alone. What it holds from round to round are log2(V/N) + 1 sums of 1/N of the elements where N is
// a power of two, and at most log2(V) + 1 elsewhere; the bits are those of one worker. With one microbatch
// per leaf a bucket's memory is free again when the next one is final.
//
// A gradient is sent once per leaf, where LeafSums sends once per step what a worker has added up before.
//
// Where several groups of workers own everything (MeshGroups::part), each sums a range of the leaves so. When
// a step's rounds are over, those who own the same piece in all groups add up what each has left, maximal
// aligned subtrees of its range: in the order of the tree (Group::all_reduce).
//
// The stages of a pipeline that a worker has come to the end of a leaf at different times: each goes through
// the rounds by itself (begin_leaf, end_leaf), with a stack of its own.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "comm/leaf_stack.h"
#include "train/state/group_memory.h"
#include "train/state/ownership.h"
#include "train/sums/exchange.h"
#include "train/sums/loss_totals.h"
#include "train/sums/round_carrier.h"
#include "train/sums/sum_tree.h"

namespace lockstep {

class RoundSums {
 public:
  struct Groups {
    Group& owners;
    Group& all;  // the same, or several like it
    Group* replicas = nullptr;
  };
  // `reach`: of the owners, `between` of the replicas; null where nothing is known of it.
  RoundSums(Backend& backend, const FlatLayout& layout, const Ownership& ownership, const SumTree& tree,
            const Groups& groups, const DeviceReach* reach = nullptr, const DeviceReach* between = nullptr);

  const SumTree& tree() const { return tree_; }
  const Buckets& buckets() const { return buckets_; }
  int64_t rounds() const { return rounds_; }
  // Of the leaf of a round, on the device; after finish() the first is that of the step.
  LossTotals& totals() { return totals_; }

  // Where a byte of the leaf's gradients lies, on the device.
  using At = std::function<void*(int64_t offset)>;
  // To be told while the last microbatch of the round's leaf is added: how many bytes are final. On return
  // all parts of the buckets but the last two that are may be overwritten.
  void ready(int64_t round, int64_t bytes, const At& at);
  // All of the round has been summed. A worker without a leaf in it says nothing but this.
  void finish_round(int64_t round) { finish_round(stages_[0], round); }
  // Of a stage of a pipeline. On return the memory of its leaf may be written; then all of it is final.
  void begin_leaf(int number);
  void end_leaf(int number, const At& at);
  // After the last leaf of all of them: the rounds in which this worker has none.
  void finish_stages();
  // The sums are complete. Requests as those of LeafSums.
  int64_t finish(int64_t request);
  // The sum of one of the slices that this worker owns, on the device.
  void* root(size_t slice) const { return carrier_->root(offsets_[slice]); }
  // The most that are added up at once, of a range of the leaves.
  static int64_t sources(LeafRange range, int64_t leaves, int64_t workers, const DeviceReach& reach);

  double comm_seconds() const { return comm_seconds_; }  // spent waiting so far
  int64_t bytes() const { return carrier_->bytes(); }
  static int64_t planned_bytes(const FlatLayout& layout, const Ownership& ownership, LeafRange range,
                               int64_t leaves, MemoryKind device);

 private:
  struct Stage {
    int number = 0;
    int64_t first = 0, end = 0;  // buckets
    int64_t started = 0;         // the next one of the round
    int64_t round = 0;
    LeafStack stack;  // before the round at hand
    struct Part {
      int64_t end = 0;  // buckets
      std::vector<Group::Ticket> tickets = {};
    };
    std::deque<Part> under_way = {};
    int64_t summed = 0;  // buckets of the round whose transfers are over
  };
  void find_stages();
  void finish_round(Stage& stage, int64_t round);
  Stage* find(int stage);                                              // null: it has no parameters
  void start(Stage& stage, int64_t end, int64_t round, const At& at);  // the next buckets up to this one
  void wait(Stage& stage, size_t under_way = 0);                       // until so many parts are left
  // Has what this group has left of some buckets added to what the others have.
  void start_between_groups(int64_t until);
  void start_between_groups_of(int64_t bucket);
  // Of all workers, who sums a leaf, and in which round.
  struct Turn {
    int rank = 0;
    int64_t round = 0;
  };
  Turn turn_of(int64_t leaf) const;
  LossTotal total_of(const std::vector<LossTotal>& leaves) const;

  FlatLayout layout_;
  SumTree tree_;
  Backend& backend_;
  Group& group_;
  Group& all_;
  Group* replicas_;
  DType dtype_;
  Buckets buckets_;
  int64_t leaves_;
  LeafRange range_;
  int64_t rounds_;
  std::vector<Slice> owned_;
  std::vector<int64_t> offsets_;  // per bucket: of this worker's piece, among those that it owns
  LossTotals totals_;
  std::vector<Stage> stages_;
  std::unique_ptr<RoundCarrier> carrier_;
  // Between groups: the next bucket, those under way, and where those of a device pass through.
  int64_t next_between_ = 0;
  std::vector<Group::Ticket> between_;
  size_t left_ = 0;  // partial sums of this group
  StagingMemory staging_;
  std::unique_ptr<Exchange> direct_;  // instead, where devices of all groups reach each other
  double comm_seconds_ = 0;
};

}  // namespace lockstep
