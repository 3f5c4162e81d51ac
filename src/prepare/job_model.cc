#include "prepare/job_model.h"

#include <utility>

#include "base/error.h"
#include "model/stored_params.h"
#include "passes/head_chunks.h"
#include "prepare/trained_params.h"

namespace lockstep {

Model build_job_model(const JobSpec& spec, const InputSizes& inputs) {
  Model model = with_trained_params(
      spec, spec.model.family->build(spec.model, inputs, spec.train.microbatch, true), true);
  if (spec.train.head_chunks > 1 && !has_cross_entropy(model.graph))
    throw UserError(
        "{}: the loss of this model is no cross-entropy, whose rows train.head_chunks deals out; leave it "
        "out",
        spec.where("train.head_chunks"));
  return spec.train.precision == Precision::kBf16Pure ? stored_in(DType::kBF16, model) : std::move(model);
}

// Moving averages are f32 whatever the weights are stored in.
Model build_job_evaluation(const JobSpec& spec, const InputSizes& inputs, int64_t batch) {
  Model model = with_trained_params(spec, spec.model.family->build(spec.model, inputs, batch, false), false);
  const bool stored = spec.train.precision == Precision::kBf16Pure && spec.train.ema == 0;
  return stored ? stored_in(DType::kBF16, model) : std::move(model);
}

}  // namespace lockstep
