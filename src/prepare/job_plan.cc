#include "prepare/job_plan.h"

#include "base/error.h"
#include "job/workers.h"
#include "prepare/job_options.h"
#include "train/checkpoint/training_checkpoints.h"
#include "train/evaluate/evaluate.h"

namespace lockstep {

JobPlan plan_job(const JobSpec& spec, const ResolvedJob& job, const Model& model, const InputSizes& inputs,
                 Backend& backend, std::optional<HostPlace> host, int mesh_rank, SharedGraphs* shared) {
  TrainOptions options = job_train_options(spec, job);
  options.host = host;
  options.mesh_rank = mesh_rank;
  options.rank = options.mesh.coordinate(MeshAxis::kData, mesh_rank);
  JobPlan plan;
  plan.host = host;
  if (options.optimizer.offloaded && backend.memory() == MemoryKind::kHost)
    throw UserError(
        "{}: strategy.offload state moves what the device holds to the host's memory, where device: cpu has "
        "it as it is; leave it out",
        spec.where("strategy.offload"));
  plan.train = plan_training(model, backend, options, shared);
  plan.memory = train_memory(plan.train, options, backend.memory());
  plan.beside.checkpoints = kCheckpointStaging;
  plan.beside.program = kProgramBytes;
  if (spec.data.hold_out > 0 || spec.data.eval.format || !spec.data.split.column.empty()) {
    const Model evaluation = build_job_evaluation(spec, inputs, spec.train.microbatch);
    PassOptions passes = options.passes;
    passes.units = plan.train.units;
    plan.beside.evaluation = evaluation_bytes(plan_evaluation(evaluation, backend, passes)) +
                             gathered_bytes(options, plan.train.whole);
  }
  return plan;
}

int64_t gathered_bytes(const TrainOptions& options, const FlatLayout& whole) {
  const bool averages = options.ema > 0;
  const Ownership ownership = options.ownership();
  const bool split = options.mesh.splits_model() || options.tensor_leaves > 1 ||
                     (averages && ownership.is_split() && !ownership.splits_params());
  return split ? whole.numel() * size_of(averages ? DType::kF32 : whole.dtype()) : 0;
}

std::optional<HostPlace> expected_host(const JobSpec& spec) {
  const int64_t workers = data_workers(spec);
  if (workers == 1 || spec.strategy.transport == WorkerTransport::kUcx) return std::nullopt;
  return HostPlace{0, static_cast<int>(workers)};
}

}  // namespace lockstep
