// PowerSums: gradients of matrices as products of two narrow ones (PowerSGD), by leaf.
//
// A parameter of n rows and m columns is sent as n x r and m x r numbers. With Q of m x r and M_v what leaf v
// has not sent:
//
//   P = sum of M_v Q        by the canonical tree, then made orthonormal
//   S = sum of M_v^T P      by the canonical tree
//   the sum is P S^T; leaf v keeps M_v - P (M_v^T P)^T, the part that P does not reach
//
// Every term is a leaf's own, so the bits do not depend on the number of workers. Q comes from one leaf,
// another in each step, which finds where most of its M_v lies: M_v^T M_v times numbers drawn by the step,
// made orthonormal. So nothing has to be kept from step to step but what leaves have not sent, in which the
// gradients of the steps before are. What is too small to gain by this is sent as it is.
//
// All of it happens after backward: there is little to send, and matrices do not end where buckets do.
//
// Right after a warm-up, when weights move most, the rank is kFirst times that of the job, and falls in
// proportion to the steps made, as topk's share does (train/sums/topk_sums.h).
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "train/sums/feedback_sums.h"

namespace lockstep {

// How a parameter is seen: a matrix of rank > 0, or a row of values that is sent whole.
struct PowerMatrix {
  int64_t offset = 0;  // of its first element in the layout
  int64_t rows = 1, columns = 1;
  int64_t rank = 0;  // 0: sent whole
};
std::vector<PowerMatrix> power_matrices(const FlatLayout& layout, int64_t rank);
// Numbers that travel for these: from the one leaf to all, and in each of the two sums.
struct PowerSizes {
  int64_t chosen = 0, first = 0, second = 0;
};
PowerSizes power_sizes(const std::vector<PowerMatrix>& matrices);

// The rank in a step, and the greatest of any. Without a warm-up, the job's from the beginning.
class PowerRank {
 public:
  static constexpr double kFirst = 4;

  explicit PowerRank(const ReduceOptions& options) : last_(options.rank), warmup_(options.warmup) {}
  int64_t at(int64_t applied) const {
    const double share = kFirst * static_cast<double>(warmup_) / static_cast<double>(applied);
    return std::max(last_, static_cast<int64_t>(std::llround(share * static_cast<double>(last_))));
  }
  int64_t most() const { return at(warmup_ + 1); }
  // Numbers of each kind, the most that any step has.
  PowerSizes sizes(const FlatLayout& layout) const;

 private:
  int64_t last_, warmup_;
};

class PowerSums : public FeedbackSums {
 public:
  PowerSums(const FlatLayout& layout, PowerRank rank, LeafResiduals& residuals, int64_t leaves, Group* group);

  void begin(int64_t step, int64_t applied) override;
  Group::Ticket start(Slice elements, float* root, const BucketTransfer& bucket) override;
  void finish() override;
  int64_t bytes() const override;

 private:
  float* memory(int64_t slot) { return memory_ + slot * stride_; }
  // One leaf's choice of Q.
  void choose(int64_t leaf);
  // Makes `of(leaf)` for every leaf of this worker, adds up siblings, and all workers' sums; it lies in slot
  // 0.
  template <typename Of>
  void sum(int64_t count, const Of& of, const char* label);
  void first_product(int64_t leaf, float* into);
  void second_product(int64_t leaf, float* into);
  void decode();
  void keep_rest(int64_t leaf);

  FlatLayout layout_;
  PowerRank rank_;
  PowerSizes most_;  // of any step
  // Of this one.
  std::vector<PowerMatrix> matrices_;
  PowerSizes sizes_;
  LeafResiduals& residuals_;
  int64_t leaves_;
  Group* group_;
  int64_t step_ = 0;
  float* root_ = nullptr;
  // Slots of the tree's sums, of this worker's leaves.
  float* memory_ = nullptr;
  int64_t stride_;
  SharedBuffer shared_;
  std::vector<float> own_;
  std::vector<float> q_, p_;    // of all matrices; columns one after the other
  std::vector<float> of_leaf_;  // M_v^T P, for each leaf of this worker
};

}  // namespace lockstep
