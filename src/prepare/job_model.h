// The model that a job asks for.
#pragma once
#include "job/spec.h"
#include "model/family.h"

namespace lockstep {

// The graph that trains on one microbatch. Throws UserError if the sizes do not make a model.
Model build_job_model(const JobSpec& spec, const InputSizes& inputs);
// The graph that evaluates a batch.
Model build_job_evaluation(const JobSpec& spec, const InputSizes& inputs, int64_t batch);

}  // namespace lockstep
