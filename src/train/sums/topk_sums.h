// TopkSums: of every block of 1024 gradients only the largest k are added up; the rest waits.
//
// A gradient of which a hundredth is sent in a step waits for a hundred steps. That is nothing in a run of
// many thousand and too long right after the warm-up, when weights move most. So the share that is sent falls
// as the run gets older (TopkShare): what waits, waits for a fixed part of the steps made so far.
//
// Which k is said by one leaf, another in each step: the largest of what it has not sent, of equal ones the
// first. All leaves give their values at these places, which are added up by the canonical tree. So what is
// sent is k indices of 16 bits, once, and k values: it does not grow with workers or leaves, as the union of
// everybody's own choice would. A leaf whose block has a number that is not finite gives NaN, wherever it is,
// so that the guard sees it.
#pragma once
#include <algorithm>
#include <vector>

#include "train/sums/feedback_sums.h"

namespace lockstep {

// The share of the gradients that is sent in a step: kFirst right after the warm-up, then less in proportion
// to the steps made, down to what the job says. Without a warm-up, that from the beginning.
class TopkShare {
 public:
  static constexpr double kFirst = 0.5;

  explicit TopkShare(const ReduceOptions& options) : last_(options.topk), warmup_(options.warmup) {}
  double at(int64_t applied) const {
    return std::clamp(kFirst * static_cast<double>(warmup_) / static_cast<double>(applied), last_, 1.0);
  }
  // In any step.
  double most() const { return at(warmup_ + 1); }

 private:
  double last_;
  int64_t warmup_;
};

class TopkSums : public FeedbackSums {
 public:
  // Values that are sent of a block.
  static int64_t per_block(double share);
  // Bytes of indices and of values, for so many elements.
  static int64_t index_bytes(double share, int64_t elements);
  static int64_t value_bytes(double share, int64_t elements);

  // Without a group, this worker has all leaves. `bucket`: elements of the largest; `numel`: of all.
  TopkSums(TopkShare share, LeafResiduals& residuals, int64_t leaves, Group* group, int64_t bucket,
           int64_t numel);

  // The step decides whose choice counts.
  void begin(int64_t step, int64_t applied) override {
    leader_ = (step - 1) % leaves_;
    k_ = per_block(share_.at(applied));
  }
  Group::Ticket start(Slice elements, float* root, const BucketTransfer& bucket) override;
  int64_t bytes() const override;

 private:
  uint16_t* indices(int64_t element) { return indices_.data() + element / kFlatBlock * k_; }
  void select(Slice elements);
  // The values of this worker's leaves, added up as far as they are siblings.
  void gather(Slice elements);
  // Into the root, and out of what this worker's leaves have not sent.
  void scatter(Slice elements, float* root);
  int leader_rank(int64_t leaf) const;
  float* sums(int64_t slot) { return sums_ + slot * stride_; }

  TopkShare share_;
  int64_t k_;  // of this step
  LeafResiduals& residuals_;
  int64_t leaves_;
  Group* group_;
  int64_t leader_ = 0;
  // Indices of all elements, since several buckets may be under way; sums of one.
  std::span<uint16_t> indices_;
  float* sums_ = nullptr;
  int64_t stride_;
  SharedBuffer shared_indices_, shared_sums_;
  std::vector<uint16_t> own_indices_;
  std::vector<float> own_sums_;
};

}  // namespace lockstep
