#include "ops/pointwise.h"

namespace lockstep {

std::vector<Type> infer_pointwise(const InferContext& context) {
  if (context.type(0).dtype == DType::kBool)
    context.fail("operand 0 is bool; cast it to a numeric type first");
  for (int operand = 1; operand < context.count(); ++operand) context.require_same_type(operand, 0);
  return {context.type(0)};
}

std::vector<Type> infer_floating_pointwise(const InferContext& context) {
  context.require_floating(0);
  return infer_pointwise(context);
}

namespace {

ShardingSignature all_placed(const Node& node, Placement placement) {
  return {std::vector<Placement>(node.inputs.size(), placement),
          std::vector<Placement>(node.outputs.size(), placement)};
}

}  // namespace

std::vector<ShardingSignature> shard_pointwise(const Graph& graph, const Node& node) {
  std::vector<ShardingSignature> signatures{all_placed(node, Placement::replicate())};
  for (int axis = 0; axis < graph.type(node.outputs[0]).shape.rank(); ++axis)
    signatures.push_back(all_placed(node, Placement::split(axis)));
  return signatures;
}

std::vector<ShardingSignature> shard_linear(const Graph& graph, const Node& node) {
  std::vector<ShardingSignature> signatures = shard_pointwise(graph, node);
  signatures.push_back(all_placed(node, Placement::partial()));
  return signatures;
}

OpDef make_pointwise(const Pointwise& op) {
  OpDef def{.name = op.name, .summary = op.summary, .attributes = op.attributes};
  def.min_inputs = def.max_inputs = op.operands;
  def.traits = {.pointwise = true, .recompute_cheap = true};
  def.infer = op.infer;
  def.gradient = op.gradient;
  def.scalar = op.scalar;
  def.decompose = op.decompose;
  def.sharding = op.linear ? shard_linear : shard_pointwise;
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{static_cast<double>(graph.type(node.outputs[0]).shape.numel()), touched_bytes(graph, node)};
  };
  for (int operand = 0; operand < op.operands; ++operand) def.inplace.push_back({operand, 0});
  return def;
}

}  // namespace lockstep
