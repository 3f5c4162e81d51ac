// inspect: runs a bad step again, microbatch by microbatch, and finds out where it went wrong.
//
// The order of the search is that of blame: a parameter that was bad before the step, a bad value in the
// batch, the first bad value that a node made. The step's gradients are lost: it must not be applied
// afterwards. Parameters and everything else that is kept from step to step are left as they were.
#pragma once
#include <functional>
#include <string>

#include "train/guard/guard.h"
#include "train/guard/inspection.h"
#include "train/step/train_step.h"

namespace lockstep {

struct InspectOptions {
  Trouble trouble = Trouble::kNone;
  int64_t step = 0;  // as it was given to accumulate
  int64_t microbatches = 1;
  Loader load;
  // Where a row of a microbatch comes from; may be left out.
  std::function<std::string(int64_t microbatch, int64_t row)> describe;
  // Those of the run. With bf16, the bad microbatch is compiled once more in fp32 and compared; that takes
  // memory for one more arena and one more gradient, and is left out where there is none.
  PassOptions passes;
};

// Call it after accumulate, before anything else is done with the step.
Inspection inspect(TrainStep& train, const Model& model, const InspectOptions& options);

}  // namespace lockstep
