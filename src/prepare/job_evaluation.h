// What a job evaluates on, by which metric, and when that ends the run.
#pragma once
#include "prepare/job_parts.h"
#include "train/evaluate/held_out.h"

namespace lockstep {

// Throws UserError if the job watches a metric that its model does not have, or watches anything without
// held-out records. The same on all workers.
void require_evaluation(const JobParts& parts);
// Of several workers one evaluates, of parameters that `state` has, or that others have: these are gathered
// in units.
HeldOut job_held_out(const JobParts& parts, Backend& backend, const StreamOptions& reading, bool evaluates,
                     const TrainState& state);

}  // namespace lockstep
