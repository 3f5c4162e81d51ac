// Whether a job fits into the memory it may use, decided before any is taken; and if not, what would fit.
#pragma once
#include "base/does_not_fit.h"
#include "prepare/host_share.h"
#include "prepare/job_plan.h"

namespace lockstep {

// Compares the plan with strategy.memory or, where the job does not say, with the worker's part of what its
// device has free; on the processor, of what the host has available.
// Throws DoesNotFit with the memory table and, planned too, the changes to the job that take less.
void require_fit(const JobSpec& spec, const ResolvedJob& job, const JobPlan& plan, const InputSizes& inputs,
                 Backend& backend, const HostShare& host);

}  // namespace lockstep
