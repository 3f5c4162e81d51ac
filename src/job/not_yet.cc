#include "job/not_yet.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "job/workers.h"

namespace lockstep {
namespace {

void need(bool holds, const JobSpec& spec, std::string_view path, std::string_view found,
          std::string_view instead) {
  if (!holds)
    throw UserError("{}: {} {} cannot be run by this version; {}", spec.where(path), path, found, instead);
}

// What a pool that does not train is there for, by its place in the list.
constexpr std::array<std::string_view, 4> kPoolServes = {"", "", "reduction or parameter servers",
                                                         "evaluators"};

// Without these servers the same bits come out, so naming the workers is all it takes to run such a job.
void need_no_servers(const JobSpec& spec) {
  if (spec.strategy.workers) return;
  for (size_t i = 2; i < std::min(kPoolServes.size(), spec.workerPoolSpecs.size()); ++i)
    if (const int64_t count = spec.workerPoolSpecs[i].replicaCount; count > 0)
      throw UserError(
          "{}: workerPoolSpecs[{}] asks for {} {}, which this version does not have; write {{}} for this "
          "pool, "
          "or --set strategy.workers={}: the bits are the same without them",
          spec.where(fmt::format("workerPoolSpecs[{}].replicaCount", i)), i, count, kPoolServes[i],
          wanted_workers(spec).value_or(1));
}

// What ZeRO does not go with; what depends on the model is found when the job is planned.
void refuse_unsplittable(const JobSpec& spec) {
  if (spec.strategy.zero == 0) return;
  const OptimizerName optimizer = spec.train.optimizer.name;
  if (optimizer == OptimizerName::kLamb || optimizer == OptimizerName::kAdafactor)
    throw UserError(
        "{}: strategy.zero {} splits tensors between workers, and {} needs norms or means of whole ones; use "
        "adamw, adam, lion or sgd, or strategy.zero 0",
        spec.where("strategy.zero"), spec.strategy.zero, name_of(optimizer));
  if (spec.strategy.reduce.via == ReduceVia::kNone)
    throw UserError(
        "{}: strategy.zero {} needs what other workers send, and strategy.reduce.via none sends nothing; use "
        "strategy.zero 0 to measure",
        spec.where("strategy.zero"), spec.strategy.zero);
}

}  // namespace

void refuse_not_yet(const JobSpec& spec) {
  const StrategySpec& strategy = spec.strategy;
  const auto number = [](int64_t value) { return std::to_string(value); };
  need(spec.model.onnx.empty(), spec, "model.onnx", spec.model.onnx, "use model.family");
  need(strategy.zero <= 2, spec, "strategy.zero", number(strategy.zero),
       "use 2, which leaves parameters with every worker and splits all else");
  refuse_unsplittable(spec);
  need(strategy.pipeline == 1, spec, "strategy.pipeline", number(strategy.pipeline), "use 1");
  need(strategy.tensor == 1, spec, "strategy.tensor", number(strategy.tensor), "use 1");
  need(strategy.reduce.via == ReduceVia::kDirect || strategy.reduce.via == ReduceVia::kNone, spec,
       "strategy.reduce.via", name_of(strategy.reduce.via), "use direct");
  need_no_servers(spec);
}

}  // namespace lockstep
