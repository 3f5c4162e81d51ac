// square_sums(g, ...): the parts of a global norm: for every block of 1024 elements of each operand, in
// order, the sum of its squares. Eight bytes each, an f64 as it lies in memory: what workers that hold parts
// of the gradients exchange must have all the bits that global_norm adds up.
#include "ops/builder.h"
#include "ops/norm_parts.h"

namespace lockstep {

OpDef square_sums_op() {
  OpDef def{.name = "square_sums", .summary = "sums of squares by blocks, as norm_of_squares takes them"};
  def.max_inputs = OpDef::kVariadic;
  def.traits = {.reduction = true};
  def.infer = [](const InferContext& c) {
    int64_t blocks = 0;
    for (int operand = 0; operand < c.count(); ++operand) {
      if (c.type(operand).dtype != DType::kF32 && c.type(operand).dtype != DType::kBF16)
        c.fail("operand {} must be f32 or bf16; cast it", operand);
      blocks += norm_part_count(c.type(operand).shape.numel());
    }
    return std::vector<Type>{{DType::kU8, {blocks * kNormPartBytes}}};
  };
  def.reference = [](const ReferenceContext& c) {
    size_t block = 0;
    for (const RefTensor* input : c.inputs)
      for (size_t begin = 0; begin < input->data.size(); begin += kNormPartElements, ++block) {
        double squares = 0;
        const size_t end = std::min(input->data.size(), begin + kNormPartElements);
        for (size_t i = begin; i < end; ++i) squares += input->data[i] * input->data[i];
        const NormPart bytes = bytes_of_norm_part(squares);
        for (size_t i = 0; i < bytes.size(); ++i)
          c.out()[block * bytes.size() + i] = static_cast<double>(bytes[i]);
      }
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
