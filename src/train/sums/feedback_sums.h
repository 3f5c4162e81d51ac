// FeedbackSums: sums of gradients of which much is left out, and kept by the leaves for the steps to come
// (train/sums/leaf_residuals.h). One implementation for each codec that does so.
#pragma once
#include <memory>

#include "train/sums/exchange.h"
#include "train/sums/leaf_residuals.h"
#include "train/sums/reduce_options.h"

namespace lockstep {

class FeedbackSums {
 public:
  virtual ~FeedbackSums() = default;
  // Before the first leaf of a step, which will be the `applied`th that is applied.
  virtual void begin(int64_t step, int64_t applied) = 0;
  // All leaves of this worker have these elements. Their sum lands at `root`: when the ticket has been waited
  // for, and at the latest with finish(). None: it is not under way.
  virtual Group::Ticket start(Slice elements, float* root, const BucketTransfer& bucket) = 0;
  // Of all elements. Called on all workers.
  virtual void finish() {}
  virtual int64_t bytes() const = 0;
};

// Without a group, this worker has all leaves. `bucket`: elements of the largest.
std::unique_ptr<FeedbackSums> make_feedback_sums(const ReduceOptions& options, const FlatLayout& layout,
                                                 LeafResiduals& residuals, int64_t leaves, Group* group,
                                                 int64_t bucket);

}  // namespace lockstep
