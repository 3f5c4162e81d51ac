// Examiner: a step that the guard did not let pass is run again with checks on, and what was found is
// compared with what is known of the run. The diagnosis is kept in a file (diagnosis.json).
#pragma once
#include <deque>
#include <functional>
#include <string>

#include "train/guard/diagnose.h"
#include "train/guard/guard.h"
#include "train/guard/inspect.h"

namespace lockstep {

class Examiner {
 public:
  // `known` has what does not change from step to step: schedule, optimizer, precision, microbatches.
  Examiner(TroubleFacts known, const Model& model, PassOptions passes, std::string file);

  // The numbers of a good step, which a diagnosis compares with. The latest of them are kept.
  void good_step(double loss, double grad_norm);

  struct Access {
    Loader load;
    // Where a row of a microbatch comes from.
    std::function<std::string(int64_t microbatch, int64_t row)> describe;
  };
  // Call it after accumulate, before anything else is done with the step. `lr` is what the step would have
  // had.
  Diagnosis examine(const Decision& decision, const StepNumbers& numbers, double lr, TrainStep& train,
                    Access access) const;

 private:
  TroubleFacts known_;
  const Model& model_;
  PassOptions passes_;
  std::string file_;
  std::deque<double> losses_, grad_norms_;
};

}  // namespace lockstep
