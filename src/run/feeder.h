// Feeder: brings the records of a microbatch into the buffers of a step. Which records these are is
// arithmetic: step s of a run reads the positions from (s - 1) * global_batch on, microbatch after
// microbatch.
#pragma once
#include <string>
#include <vector>

#include "data/order/order.h"
#include "data/source.h"
#include "train/train_step.h"

namespace lockstep {

class Feeder {
 public:
  // Throws UserError if the model takes an input that the source does not have.
  Feeder(const Source& source, Order order, int64_t microbatch, int64_t microbatches, const TrainStep& step);

  void load(TrainStep& step, int64_t step_number, int64_t microbatch);

  std::vector<int64_t> records(int64_t step_number, int64_t microbatch) const;
  const Source& source() const { return source_; }
  const Batch& batch() const { return batch_; }  // the one loaded last
  double seconds() const { return seconds_; }    // spent in load so far

 private:
  const Source& source_;
  Order order_;
  int64_t microbatch_;
  int64_t microbatches_;
  Batch batch_;
  double seconds_ = 0;
};

}  // namespace lockstep
