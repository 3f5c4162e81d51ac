// What the optimizer updates share: flat f32 buffers of one length, then the scalars of the step.
//
// Operands are p, g, the optimizer's own buffers, then scale f32[] (multiplies the gradient: clip factor over count),
// lr f32[] and step i64[] (counted from 1). Results are p and the optimizer's buffers, updated in place.
#pragma once
#include "graph/op_def.h"

namespace lockstep {

// states: how many buffers the optimizer keeps per parameter element.
std::vector<Type> infer_optimizer(const InferContext& context, int states);
// `no_decay` lists [begin, end) pairs of elements, in order, that weight decay leaves alone.
AttributeDef no_decay_attribute();
bool decays(const std::vector<int64_t>& no_decay, int64_t element);
std::vector<InplacePair> optimizer_inplace(int states);
std::vector<ShardingSignature> shard_optimizer(const Graph& graph, const Node& node);

}  // namespace lockstep
