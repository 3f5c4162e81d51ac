#include "prepare/job_model.h"

#include <utility>

#include "model/stored_params.h"
#include "prepare/trained_params.h"

namespace lockstep {

Model build_job_model(const JobSpec& spec, const InputSizes& inputs) {
  Model model = with_trained_params(
      spec, spec.model.family->build(spec.model, inputs, spec.train.microbatch, true), true);
  return spec.train.precision == Precision::kBf16Pure ? stored_in(DType::kBF16, model) : std::move(model);
}

// Moving averages are f32 whatever the weights are stored in.
Model build_job_evaluation(const JobSpec& spec, const InputSizes& inputs, int64_t batch) {
  Model model = with_trained_params(spec, spec.model.family->build(spec.model, inputs, batch, false), false);
  const bool stored = spec.train.precision == Precision::kBf16Pure && spec.train.ema == 0;
  return stored ? stored_in(DType::kBF16, model) : std::move(model);
}

}  // namespace lockstep
