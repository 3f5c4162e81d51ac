#include "job/not_yet.h"

#include "base/error.h"
#include "job/workers.h"
#include "model/tensor_leaves.h"

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

void refuse_zero_group(const JobSpec& spec) {
  const StrategySpec& strategy = spec.strategy;
  if (!strategy.zero_group) return;
  if (strategy.zero == 0)
    throw UserError(
        "{}: strategy.zero_group {} says among how many workers strategy.zero shares out what they hold, and "
        "that is 0; write strategy.zero 1, 2 or 3, or leave the group out",
        spec.where("strategy.zero_group"), *strategy.zero_group);
  if (strategy.pipeline * strategy.tensor > 1)
    throw UserError(
        "{}: strategy.zero_group {} is of whole models, and strategy.pipeline {} times strategy.tensor {} "
        "has "
        "parts of one; leave strategy.zero_group out, or the others",
        spec.where("strategy.zero_group"), *strategy.zero_group, strategy.pipeline, strategy.tensor);
}

// What ZeRO does not go with; what depends on the model is found when the job is planned.
void refuse_unsplittable(const JobSpec& spec) {
  refuse_zero_group(spec);
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
  refuse(strategy.offload != Offload::kNone, "strategy.offload", std::string(name_of(strategy.offload)),
         "servers hold the optimizer's state", "strategy.offload none");
  refuse(strategy.pipeline > 1, "strategy.pipeline", std::to_string(strategy.pipeline),
         "every worker computes whole gradients", "strategy.pipeline 1");
  refuse(strategy.tensor > 1, "strategy.tensor", std::to_string(strategy.tensor),
         "every worker computes whole gradients", "strategy.tensor 1");
  refuse(tensor_leaves(spec) > 1, "strategy.tensor_leaves", std::to_string(tensor_leaves(spec)),
         "servers hold whole parameters", "no tensor_leaves");
  refuse(strategy.reduce.compress != GradientCodec::kNone, "strategy.reduce.compress",
         std::string(name_of(strategy.reduce.compress)), "pushes are applied as they were computed",
         "strategy.reduce.compress none");
  refuse(strategy.reduce.via != ReduceVia::kDirect, "strategy.reduce.via",
         std::string(name_of(strategy.reduce.via)), "workers do not add up each other's gradients",
         "strategy.reduce.via direct");
  refuse(strategy.reduce.order != SumOrder::kCanonical, "strategy.reduce.order", "fast",
         "a worker adds up its own microbatches, in the canonical order", "strategy.reduce.order canonical");
  refuse(spec.train.guard.non_finite == NonFinitePolicy::kRewind, "train.guard.non_finite", "rewind",
         "leases in flight read weights that a rewind takes back", "train.guard.non_finite: skip or stop");
}

// Degrees that share so many leaves as subtrees of the tree over them.
std::vector<int64_t> degrees_for(int64_t leaves) {
  std::vector<int64_t> degrees;
  for (int64_t degree = 1; degree <= leaves; ++degree)
    if (TensorShare::is_possible(leaves, degree)) degrees.push_back(degree);
  return degrees;
}

// What tensor parallelism does not go with; what depends on the model is found when the job is planned.
void refuse_tensor(const JobSpec& spec) {
  const StrategySpec& strategy = spec.strategy;
  const int64_t leaves = tensor_leaves(spec);
  if (leaves == 1 && strategy.tensor == 1) return;
  if (!TensorShare::is_possible(leaves, strategy.tensor))
    throw UserError(
        "{}: strategy.tensor {} workers cannot have equal parts of the tree over strategy.tensor_leaves {}; "
        "use strategy.tensor {}",
        spec.where("strategy.tensor"), strategy.tensor, leaves, fmt::join(degrees_for(leaves), ", "));
  const std::string where = spec.where(strategy.tensor > 1 ? "strategy.tensor" : "strategy.tensor_leaves");
  if (strategy.reduce.via == ReduceVia::kNone && strategy.tensor > 1)
    throw UserError("{}: tensor ranks cannot train alone, as strategy.reduce.via none asks; use direct",
                    where);
  if (strategy.reduce.order == SumOrder::kFast)
    throw UserError("{}: leaves are added up in the canonical order; leave strategy.reduce.order out", where);
  if (spec.train.lora.rank)
    throw UserError(
        "{}: adapters (train.lora) meet the products beside which they lie before these are summed; use "
        "strategy.tensor 1 and no tensor_leaves",
        where);
}

// What a head in chunks does not go with: a chunk goes forward and backward at once.
void refuse_head_chunks(const JobSpec& spec) {
  if (spec.train.head_chunks == 1) return;
  const std::string where = spec.where("train.head_chunks");
  if (spec.strategy.pipeline > 1)
    throw UserError(
        "{}: the last stage of a pipeline goes forward and backward in two graphs, and a chunk of the head "
        "in "
        "one; use train.head_chunks 1 or strategy.pipeline 1",
        where);
  if (tensor_leaves(spec) > 1)
    throw UserError("{}: leaves have columns of the logits each; use train.head_chunks 1 or no tensor_leaves",
                    where);
}

// What compressed gradients do not go with.
void refuse_compression(const JobSpec& spec) {
  const StrategySpec& strategy = spec.strategy;
  const GradientCodec codec = strategy.reduce.compress;
  if (codec == GradientCodec::kNone) return;
  const std::string where = spec.where("strategy.reduce.compress");
  if (codec == GradientCodec::kOnebit)
    throw UserError(
        "{}: strategy.reduce.compress onebit: a sum of signs is no sign, so that it would depend on how many "
        "leaves a "
        "worker adds up before it sends; use int8, which rounds every sum alike, or topk or powersgd, which "
        "send "
        "less",
        where);
  const auto refuse = [&](std::string_view what, std::string_view why, std::string_view instead) {
    throw UserError("{}: strategy.reduce.compress {} does not go with {}: {}; use {}", where, name_of(codec),
                    what, why, instead);
  };
  if (has_feedback(codec) && strategy.zero > 0)
    refuse(fmt::format("strategy.zero {}", strategy.zero),
           "leaves keep what they do not send with who adds them up, and ZeRO is there to save memory",
           "bf16 or int8 with strategy.zero 1, or strategy.zero 0");
  if (has_feedback(codec) && strategy.pipeline > 1)
    refuse(fmt::format("strategy.pipeline {}", strategy.pipeline),
           "what leaves have not sent is not kept by stages", "bf16 or int8, or strategy.pipeline 1");
  if ((has_feedback(codec) || codec == GradientCodec::kAuto) && tensor_leaves(spec) > 1)
    refuse(fmt::format("strategy.tensor_leaves {}", tensor_leaves(spec)),
           "what leaves of the step have not sent is not kept for leaves of the model",
           "bf16 or int8, or strategy.tensor 1 and no tensor_leaves");
  if (has_feedback(codec) && strategy.reduce.via == ReduceVia::kNone)
    refuse("strategy.reduce.via none", "leaves keep what they do not send", "strategy.reduce.via direct");
  if (codec == GradientCodec::kAuto &&
      (strategy.pipeline > 1 || strategy.zero > 0 || strategy.reduce.via == ReduceVia::kNone))
    refuse("strategy.pipeline, strategy.zero or strategy.reduce.via none",
           "it is settled by trial steps of workers that exchange the gradients of a whole model",
           "bf16 or int8");
  if (strategy.zero > 1)
    refuse(fmt::format("strategy.zero {}", strategy.zero),
           "leaves are sent one by one there, before there is anything to round",
           "strategy.zero 1, or strategy.reduce.compress none");
  if (spec.train.precision == Precision::kBf16Pure)
    refuse("train.precision bf16_pure", "gradients are bf16 there as it is", "strategy.reduce.compress none");
  if (strategy.reduce.order == SumOrder::kFast)
    refuse("strategy.reduce.order fast", "sums are rounded at the nodes of the canonical tree",
           "strategy.reduce.order canonical");
}

}  // namespace

void refuse_not_yet(const JobSpec& spec) {
  need(spec.model.onnx.empty(), spec, "model.onnx", spec.model.onnx, "use model.family");
  refuse_unsplittable(spec);
  refuse_pipeline(spec);
  refuse_tensor(spec);
  refuse_head_chunks(spec);
  refuse_with_servers(spec);
  refuse_async(spec);
  refuse_compression(spec);
  need_no_evaluators(spec);
}

}  // namespace lockstep
