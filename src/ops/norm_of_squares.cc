// norm_of_squares(s, ...): the norm whose parts square_sums has made: the root of their sum, in index order.
// Over all parts of a buffer these are the bits of its global_norm.
#include <cmath>

#include "ops/builder.h"
#include "ops/norm_parts.h"

namespace lockstep {

OpDef norm_of_squares_op() {
  OpDef def{.name = "norm_of_squares", .summary = "norm of the buffers whose square_sums it is given"};
  def.max_inputs = OpDef::kVariadic;
  def.traits = {.reduction = true};
  def.infer = [](const InferContext& c) {
    for (int operand = 0; operand < c.count(); ++operand)
      if (c.type(operand).dtype != DType::kU8 || c.type(operand).shape.numel() % kNormPartBytes != 0)
        c.fail("operand {} must be a result of square_sums", operand);
    return std::vector<Type>{{DType::kF32, {}}};
  };
  def.reference = [](const ReferenceContext& c) {
    double squares = 0;
    for (const RefTensor* input : c.inputs)
      for (size_t begin = 0; begin < input->data.size(); begin += kNormPartBytes) {
        NormPart bytes{};
        for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(input->data[begin + i]);
        squares += norm_part_of(bytes);
      }
    c.out()[0] = std::sqrt(squares);
  };
  def.sharding = [](const Graph&, const Node& node) {
    return std::vector<ShardingSignature>{
        {std::vector<Placement>(node.inputs.size()), {Placement::replicate()}}};
  };
  def.cost = [](const Graph& graph, const Node& node) {
    const double bytes = touched_bytes(graph, node);
    return Cost{bytes / 8, bytes};
  };
  return def;
}

}  // namespace lockstep
