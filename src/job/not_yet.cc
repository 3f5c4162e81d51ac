#include "job/not_yet.h"

#include "base/error.h"

namespace lockstep {
namespace {

void need(bool holds, const JobSpec& spec, std::string_view path, std::string_view found,
          std::string_view instead) {
  if (!holds)
    throw UserError("{}: {} {} cannot be run by this version; {}", spec.where(path), path, found, instead);
}

int64_t replicas(const JobSpec& spec) {
  int64_t sum = 0;
  for (const WorkerPool& pool : spec.workerPoolSpecs) sum += pool.replicaCount;
  return sum;
}

std::string machines_of(const JobSpec& spec) {
  for (size_t i = 0; i < spec.workerPoolSpecs.size(); ++i)
    if (const auto found = spec.origins.find(fmt::format("workerPoolSpecs[{}].replicaCount", i));
        found != spec.origins.end() && found->second.kind != Origin::Kind::kDefault)
      return found->second.place();
  return spec.file;
}

}  // namespace

void refuse_not_yet(const JobSpec& spec) {
  const StrategySpec& strategy = spec.strategy;
  const auto number = [](int64_t value) { return std::to_string(value); };
  need(spec.model.hf.empty(), spec, "model.hf", spec.model.hf, "use model.family");
  need(spec.model.onnx.empty(), spec, "model.onnx", spec.model.onnx, "use model.family");
  need(strategy.zero == 0, spec, "strategy.zero", number(strategy.zero), "use 0");
  need(strategy.pipeline == 1, spec, "strategy.pipeline", number(strategy.pipeline), "use 1");
  need(strategy.tensor == 1, spec, "strategy.tensor", number(strategy.tensor), "use 1");
  need(strategy.reduce.via == ReduceVia::kDirect, spec, "strategy.reduce.via", name_of(strategy.reduce.via),
       "use direct");
  need(strategy.reduce.order == ReduceOrder::kCanonical, spec, "strategy.reduce.order",
       name_of(strategy.reduce.order), "use canonical");
  // One worker gives the bits of many, so asking for one is all it takes to run a cluster's job here.
  if (!strategy.workers && replicas(spec) > 1)
    throw UserError(
        "{}: workerPoolSpecs asks for {} machines, and this version runs one; use --set strategy.workers=1, "
        "which "
        "gives the same bits",
        machines_of(spec), replicas(spec));
}

}  // namespace lockstep
