// StepOrder: which positions of a run make which microbatch of a step.
//
// A step reads the positions from `first` on, as many as it has samples. Its microbatches take them lane by
// lane: a worker owns neighbouring microbatches, so it owns whole lanes and reads only the blocks of these,
// and no two workers read the same block. A pure function of (order, first, sizes), whoever asks; a step has
// the same samples for any number of workers.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "data/order/read_order.h"

namespace lockstep {

class StepOrder {
 public:
  StepOrder(const ReadOrder& order, int64_t microbatch, int64_t microbatches)
      : order_(order), microbatch_(microbatch), microbatches_(microbatches) {}

  int64_t microbatch() const { return microbatch_; }
  int64_t microbatches() const { return microbatches_; }
  int64_t samples() const { return microbatch_ * microbatches_; }

  // Of one microbatch of the step that begins at position `first`, from its row-th sample on.
  void positions(int64_t first, int64_t microbatch, std::span<int64_t> out, int64_t row = 0) const;
  // Their records, and where wanted the epochs.
  void records(int64_t first, int64_t microbatch, std::vector<int64_t>& records,
               std::vector<int64_t>* epochs = nullptr) const;
  // Of some of its samples, from the row-th on.
  void records(int64_t first, int64_t microbatch, int64_t row, std::span<int64_t> records,
               std::vector<int64_t>* epochs) const;

 private:
  ReadOrder order_;
  int64_t microbatch_;
  int64_t microbatches_;
};

}  // namespace lockstep
