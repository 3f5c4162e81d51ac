#include "prepare/job_plan.h"

#include "prepare/job_options.h"
#include "train/checkpoint/training_checkpoints.h"
#include "train/evaluate/evaluate.h"

namespace lockstep {

JobPlan plan_job(const JobSpec& spec, const ResolvedJob& job, const Model& model, const InputSizes& inputs,
                 Backend& backend, std::optional<HostPlace> host, int64_t rank) {
  TrainOptions options = job_train_options(spec, job);
  options.host = host;
  options.rank = rank;
  JobPlan plan;
  plan.host = host;
  plan.train = plan_training(model, backend, options);
  plan.memory = train_memory(plan.train, options, backend.memory());
  plan.beside.checkpoints = kCheckpointStaging;
  plan.beside.program = kProgramBytes;
  if (spec.data.hold_out > 0 || spec.data.eval.format || !spec.data.split.column.empty()) {
    const Model evaluation = build_job_evaluation(spec, inputs, spec.train.microbatch);
    plan.beside.evaluation = evaluation_bytes(plan_evaluation(evaluation, backend, options.passes)) +
                             split_averages_bytes(options, plan.train.layout);
  }
  return plan;
}

int64_t split_averages_bytes(const TrainOptions& options, const FlatLayout& layout) {
  const bool split = options.ema > 0 && options.ownership().is_split();
  return split ? layout.numel() * int64_t{sizeof(float)} : 0;
}

std::optional<HostPlace> expected_host(const JobSpec& spec) {
  const int64_t workers = job_workers(spec);
  if (workers == 1 || spec.strategy.transport == WorkerTransport::kUcx) return std::nullopt;
  return HostPlace{0, static_cast<int>(workers)};
}

}  // namespace lockstep
