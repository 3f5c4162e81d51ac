// Whether a job fits into the memory it may use, decided before any is taken; and if not, what would fit.
#pragma once
#include "base/error.h"
#include "run/job_plan.h"

namespace lockstep {

// The plan of a job exceeds its memory. The program ends with code 3.
class DoesNotFit : public UserError {
 public:
  using UserError::UserError;
};

// Compares the plan with strategy.memory or, where the job does not say, with what the machine has available.
// Throws DoesNotFit with the memory table and, planned too, the changes to the job that take less.
void require_fit(const JobSpec& spec, const ResolvedJob& job, const JobPlan& plan, const InputSizes& inputs,
                 Backend& backend);

}  // namespace lockstep
