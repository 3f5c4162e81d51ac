// A step that the guard did not let pass: it is run again with checks on, and what was found is said and kept
// in <run>/diagnosis.json.
#pragma once
#include <deque>
#include <functional>
#include <string>

#include "observe/records.h"
#include "run/feeder.h"
#include "run/job_parts.h"
#include "train/guard/diagnose.h"
#include "train/guard/guard.h"

namespace lockstep {

// The numbers of the latest good steps, which a diagnosis compares with.
class RecentNumbers {
 public:
  void add(double loss, double grad_norm);
  std::vector<double> losses() const { return {losses_.begin(), losses_.end()}; }
  std::vector<double> grad_norms() const { return {grad_norms_.begin(), grad_norms_.end()}; }

 private:
  std::deque<double> losses_, grad_norms_;
};

// Call it after accumulate, before anything else is done with the step. Writes diagnosis.json. `progress` is
// called with every microbatch.
Diagnosis examine(const Decision& decision, const StepRecord& record, const RecentNumbers& recent,
                  const JobParts& parts, TrainStep& train, Feeder& feeder,
                  const std::function<void()>& progress);

}  // namespace lockstep
