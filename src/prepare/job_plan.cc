#include "prepare/job_plan.h"

#include <fmt/ranges.h>

#include <set>

#include "base/error.h"
#include "job/workers.h"
#include "prepare/job_data.h"
#include "prepare/job_options.h"
#include "train/checkpoint/training_checkpoints.h"
#include "train/evaluate/evaluate.h"
#include "train/evaluate/evaluation_units.h"

namespace lockstep {
namespace {

// Which parameters, or averages of them, the worker that evaluates will have as a whole (TrainState).
class EvaluatedParams {
 public:
  EvaluatedParams(const TrainOptions& options, const TrainPlans& plans) : all_(options.mesh.splits_model()) {
    const Ownership ownership = options.ownership();
    const bool owned = ownership.splits_params() || (options.ema > 0 && ownership.is_split());
    for (const FlatEntry& entry : plans.whole.entries())
      if (owned) split_.insert(entry.name);
    for (const auto& [name, piece] : plans.pieces) split_.insert(piece.param);
  }

  bool is_whole(std::string_view name) const { return !all_ && !split_.contains(name); }
  // Which are not, in words.
  std::string split() const { return all_ ? "all" : fmt::format("{}", fmt::join(split_, " ")); }

 private:
  bool all_;
  std::set<std::string, std::less<>> split_;
};

}  // namespace

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
  if (mesh_rank > 0 || !evaluates(spec)) return plan;
  const EvaluatedParams evaluated(options, plan.train);
  const auto bytes = [&] {
    const Model evaluation = build_job_evaluation(spec, inputs, spec.train.microbatch);
    PassOptions passes = options.passes;
    passes.units = evaluation_units(
        evaluation.graph, [&](std::string_view name) { return evaluated.is_whole(name); },
        options.reduce.bucket_bytes);
    return evaluation_bytes(plan_batches(evaluation, backend, passes).plan);
  };
  plan.beside.evaluation =
      shared == nullptr ? bytes() : shared->once("evaluation of " + evaluated.split(), bytes);
  return plan;
}

bool evaluates(const JobSpec& spec) {
  return spec.data.hold_out > 0 || spec.data.eval.format || !spec.data.split.column.empty() ||
         evaluates_apart(spec);
}

std::optional<HostPlace> expected_host(const JobSpec& spec) {
  const int64_t workers = data_workers(spec);
  if (workers == 1 || spec.strategy.transport == WorkerTransport::kUcx) return std::nullopt;
  return HostPlace{0, static_cast<int>(workers)};
}

}  // namespace lockstep
