#include "run/job_plan.h"

#include "run/job_options.h"
#include "train/evaluate.h"

namespace lockstep {

JobPlan plan_job(const JobSpec& spec, const ResolvedJob& job, const Model& model, const InputSizes& inputs,
                 Backend& backend) {
  return plan_job(spec, job_train_options(spec, job), model, inputs, backend);
}

JobPlan plan_job(const JobSpec& spec, const TrainOptions& options, const Model& model,
                 const InputSizes& inputs, Backend& backend) {
  JobPlan plan;
  plan.train = plan_training(model, backend, options);
  plan.memory = train_memory(plan.train, options);
  if (spec.data.hold_out > 0 || spec.data.eval.format) {
    const Model evaluation = build_job_evaluation(spec, inputs, spec.train.microbatch);
    plan.evaluation = evaluation_bytes(plan_evaluation(evaluation, backend, options.passes));
  }
  return plan;
}

}  // namespace lockstep
