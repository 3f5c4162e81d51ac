// global_norm(g): the Euclidean norm of a flat buffer, summed over fixed blocks in index order. Infinite or
// NaN when any element is.
#include <cmath>

#include "ops/builder.h"

namespace lockstep {

OpDef global_norm_op() {
  OpDef def{.name = "global_norm", .summary = "Euclidean norm of one or more flat buffers"};
  def.max_inputs = OpDef::kVariadic;
  def.traits = {.reduction = true};
  def.infer = [](const InferContext& c) {
    for (int operand = 0; operand < c.count(); ++operand)
      if (c.type(operand).dtype != DType::kF32 && c.type(operand).dtype != DType::kBF16)
        c.fail("operand {} must be f32 or bf16; cast it", operand);
    return std::vector<Type>{{DType::kF32, {}}};
  };
  def.reference = [](const ReferenceContext& c) {
    double squares = 0;
    for (const RefTensor* input : c.inputs)
      for (const double x : input->data) squares += x * x;
    c.out()[0] = std::sqrt(squares);
  };
  def.decompose = [](Graph& graph, const Node&, std::span<const Value> inputs) {
    Builder b(graph);
    Value squares;
    for (const Value input : inputs) {
      const Value flat = b.cast(b.reshape(input, {b.shape(input).numel()}), DType::kF32);
      const Value sum = b.sum(b.mul(flat, flat), {0});
      squares = squares.valid() ? b.add(squares, sum) : sum;
    }
    return std::vector<Value>{b.sqrt(squares)};
  };
  def.sharding = [](const Graph&, const Node& node) {
    return std::vector<ShardingSignature>{
        {std::vector<Placement>(node.inputs.size()), {Placement::replicate()}}};
  };
  def.cost = [](const Graph& graph, const Node& node) {
    const double bytes = touched_bytes(graph, node);
    return Cost{bytes / 2, bytes};
  };
  return def;
}

}  // namespace lockstep
