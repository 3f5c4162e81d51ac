#include "prepare/job_model.h"

namespace lockstep {

Model build_job_model(const JobSpec& spec, const InputSizes& inputs) {
  return spec.model.family->build(spec.model, inputs, spec.train.microbatch, true);
}

Model build_job_evaluation(const JobSpec& spec, const InputSizes& inputs, int64_t batch) {
  return spec.model.family->build(spec.model, inputs, batch, false);
}

}  // namespace lockstep
