// What the optimizer updates share: flat f32 buffers of one length, then the scalars of the step.
//
// Operands are p, g, the optimizer's own buffers, then scale f32[] (multiplies the gradient: clip factor over
// count), lr f32[] and step i64[] (counted from 1). Results are p and the optimizer's buffers, updated in
// place. Updates element by element also take bf16 buffers (ops/rounded_update.h).
#pragma once
#include "ops/builder.h"

namespace lockstep {

// states: how many buffers of the parameters' length the optimizer keeps.
std::vector<Type> infer_optimizer(const InferContext& context, int states);

// The pieces of infer_optimizer, for updates whose buffers have other lengths.
void require_flat(const InferContext& context, int operand);
void require_step_scalars(const InferContext& context);  // the last three operands
// The attribute lists [begin, end) pairs of elements that rise and stay within the parameters.
void require_ranges(const InferContext& context, std::string_view attribute);
// Updates that treat elements [begin, end) as one tensor decay all of it or nothing.
void require_one_decay(const InferContext& context, int64_t begin, int64_t end);

// `no_decay` lists [begin, end) pairs of elements, in order, that weight decay leaves alone.
AttributeDef no_decay_attribute();
bool decays(const std::vector<int64_t>& no_decay, int64_t element);

// The scalars of the step, for references.
struct ReferenceStep {
  explicit ReferenceStep(const ReferenceContext& context);
  double scale, lr, t;
};

// The same for decompositions: what every update reads, in f32.
struct DecomposedStep {
  DecomposedStep(Builder& builder, const Node& node, std::span<const Value> inputs);
  Value p;         // the parameters
  Value gradient;  // times scale
  Value lr;
  Value t;      // the step
  Value decay;  // weight_decay, or 0 where no_decay says so: per element, or one number for all
};
// a old + (1 - a) new: how moments move.
Value moved(Builder& builder, double a, Value old_value, Value new_value);
// Adam's step without the learning rate: m / (1 - beta1^t) / (sqrt(v) / sqrt(1 - beta2^t) + epsilon).
Value adam_direction(Builder& builder, const Attributes& attributes, Value m, Value v, Value t);

std::vector<InplacePair> optimizer_inplace(int states);
// Updates that are element-wise: any contiguous range of the flat buffers may live on any worker (ZeRO).
std::vector<ShardingSignature> shard_optimizer(const Graph& graph, const Node& node);
// Updates that need a norm over whole tensors.
std::vector<ShardingSignature> shard_whole_tensors(const Graph& graph, const Node& node);

}  // namespace lockstep
