// Feeder: brings the records of a microbatch into the buffers of a step. Which records these are is
// arithmetic: step s of a run reads the positions from (s - 1) * global_batch on, divided into microbatches
// by data/order/step_order.h. The microbatches of this worker are made ahead of time, in their order.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/order/step_order.h"
#include "data/source/source.h"
#include "data/stream/batch_stream.h"
#include "observe/records.h"
#include "train/step/train_step.h"

namespace lockstep {

class Feeder {
 public:
  // Throws UserError if the model takes an input that the source does not have. A run has that many steps.
  Feeder(const Source& source, const StepOrder& order, const TrainStep& step, int64_t steps,
         const StreamOptions& options = {});

  // From here on only the microbatches of these steps are asked for: no others are made ahead of time.
  void begin(int64_t first_step, int64_t steps);

  void load(TrainStep& step, int64_t step_number, int64_t microbatch);

  std::vector<int64_t> records(int64_t step_number, int64_t microbatch) const;
  const Source& source() const { return source_; }
  double seconds() const { return seconds_; }  // spent in load so far
  InputReport report() const { return stream_->report(); }

 private:
  const Batch& batch_of(int64_t step_number, int64_t microbatch);

  const Source& source_;
  StepOrder order_;
  SumTree tree_;  // which says which microbatches are this worker's
  StreamOptions options_;
  int64_t first_step_ = 1;        // that the stream begins with
  std::unique_ptr<Batch> other_;  // of another worker's microbatch
  double seconds_ = 0;
  std::unique_ptr<BatchStream> stream_;
};

// What the input did, as a run's summary has it.
InputSummary input_summary(const InputReport& report);

}  // namespace lockstep
