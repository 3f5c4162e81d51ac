#include "job/not_yet.h"

#include "base/error.h"
#include "job/workers.h"

namespace lockstep {
namespace {

void need(bool holds, const JobSpec& spec, std::string_view path, std::string_view found,
          std::string_view instead) {
  if (!holds)
    throw UserError("{}: {} {} cannot be run by this version; {}", spec.where(path), path, found, instead);
}

// Evaluations are the workers' own.
void need_no_evaluators(const JobSpec& spec) {
  constexpr size_t kEvaluators = 3;
  if (spec.strategy.workers || spec.workerPoolSpecs.size() <= kEvaluators) return;
  if (const int64_t count = spec.workerPoolSpecs[kEvaluators].replicaCount; count > 0)
    throw UserError(
        "{}: workerPoolSpecs[{}] asks for {} evaluators, which this version does not have; write {{}} for "
        "this "
        "pool, or --set strategy.workers={}: the bits are the same without them",
        spec.where(fmt::format("workerPoolSpecs[{}].replicaCount", kEvaluators)), kEvaluators, count,
        wanted_workers(spec).value_or(1));
}

// What Reduction Servers do not go with: they return whole sums of gradients to workers that hold all of the
// model.
void refuse_with_servers(const JobSpec& spec) {
  const StrategySpec& strategy = spec.strategy;
  if (strategy.reduce.via != ReduceVia::kServer) return;
  const auto refuse = [&](std::string_view path, std::string_view value, std::string_view why) {
    throw UserError(
        "{}: {} {} does not go with strategy.reduce.via server: {}; use strategy.reduce.via direct",
        spec.where(path), path, value, why);
  };
  if (strategy.zero > 0)
    refuse("strategy.zero", std::to_string(strategy.zero),
           "servers give whole sums to everybody, and ZeRO wants each worker's slice alone");
  if (strategy.pipeline > 1)
    refuse("strategy.pipeline", std::to_string(strategy.pipeline),
           "servers add up the gradients of one whole model, and stages have parts of it");
  if (strategy.tensor > 1)
    refuse("strategy.tensor", std::to_string(strategy.tensor),
           "servers add up the gradients of one whole model, and tensor ranks have parts of it");
  if (strategy.reduce.order == SumOrder::kFast)
    refuse("strategy.reduce.order", "fast", "servers complete the canonical tree");
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

// What a pipeline does not go with; what depends on the model is found when the job is planned.
void refuse_pipeline(const JobSpec& spec) {
  const StrategySpec& strategy = spec.strategy;
  if (strategy.pipeline == 1) return;
  const std::string where = spec.where("strategy.pipeline");
  if (strategy.reduce.via == ReduceVia::kNone)
    throw UserError(
        "{}: stages of a pipeline cannot train alone, as strategy.reduce.via none asks; use direct", where);
  if (strategy.reduce.order == SumOrder::kFast)
    throw UserError("{}: a pipeline adds up in the canonical order; leave strategy.reduce.order out", where);
  if (strategy.zero > 1)
    throw UserError(
        "{}: strategy.zero {} lets gradients go after each leaf, and a pipeline has several in flight; use "
        "strategy.zero 1",
        where, strategy.zero);
  if (!spec.train.init_from.run.empty() || !spec.model.hf.empty())
    throw UserError(
        "{}: weights of files are not given to the stages of a pipeline; start the run on one worker, and go "
        "on from its checkpoint with strategy.pipeline {}",
        where, strategy.pipeline);
}

// What parameter servers do not go with; what depends on the model is found when the run begins.
void refuse_async(const JobSpec& spec) {
  const StrategySpec& strategy = spec.strategy;
  const auto need_async = [&](std::string_view path, int64_t value, int64_t fallback) {
    // A job as it is printed has all keys, those with their defaults too.
    if (strategy.mode == TrainMode::kSync && value != fallback)
      throw UserError(
          "{}: {} {} is of strategy.mode async, and the mode is sync; write strategy.mode: async, or leave "
          "it "
          "out",
          spec.where(path), path, value);
  };
  need_async("strategy.staleness", strategy.staleness, kDefaultStaleness);
  need_async("strategy.servers", strategy.servers, 1);
  if (!trains_async(spec)) return;
  const auto refuse = [&](bool found, std::string_view path, const std::string& value, std::string_view why,
                          std::string_view instead) {
    if (found)
      throw UserError("{}: {} {} does not go with strategy.mode async: {}; use {}", spec.where(path), path,
                      value, why, instead);
  };
  const OptimizerName optimizer = spec.train.optimizer.name;
  refuse(optimizer == OptimizerName::kLamb || optimizer == OptimizerName::kAdafactor, "train.optimizer.name",
         std::string(name_of(optimizer)),
         "servers hold slices of tensors, and it needs norms or means of whole ones",
         "adamw, adam, lion or sgd");
  refuse(strategy.zero > 0, "strategy.zero", std::to_string(strategy.zero),
         "servers hold the optimizer's state, and workers have none of it to share out", "strategy.zero 0");
  refuse(strategy.pipeline > 1, "strategy.pipeline", std::to_string(strategy.pipeline),
         "every worker computes whole gradients", "strategy.pipeline 1");
  refuse(strategy.tensor > 1, "strategy.tensor", std::to_string(strategy.tensor),
         "every worker computes whole gradients", "strategy.tensor 1");
  refuse(strategy.reduce.via != ReduceVia::kDirect, "strategy.reduce.via",
         std::string(name_of(strategy.reduce.via)), "workers do not add up each other's gradients",
         "strategy.reduce.via direct");
  refuse(strategy.reduce.order != SumOrder::kCanonical, "strategy.reduce.order", "fast",
         "a worker adds up its own microbatches, in the canonical order", "strategy.reduce.order canonical");
  refuse(spec.train.guard.non_finite == NonFinitePolicy::kRewind, "train.guard.non_finite", "rewind",
         "leases in flight read weights that a rewind takes back", "train.guard.non_finite: skip or stop");
}

}  // namespace

void refuse_not_yet(const JobSpec& spec) {
  const StrategySpec& strategy = spec.strategy;
  const auto number = [](int64_t value) { return std::to_string(value); };
  need(spec.model.onnx.empty(), spec, "model.onnx", spec.model.onnx, "use model.family");
  refuse_unsplittable(spec);
  refuse_pipeline(spec);
  need(strategy.tensor == 1, spec, "strategy.tensor", number(strategy.tensor), "use 1");
  need(strategy.reduce.via != ReduceVia::kRing, spec, "strategy.reduce.via", name_of(strategy.reduce.via),
       "use direct");
  refuse_with_servers(spec);
  refuse_async(spec);
  need_no_evaluators(spec);
}

}  // namespace lockstep
