#include "ops/optimizer.h"

namespace lockstep {

std::vector<Type> infer_optimizer(const InferContext& context, int states) {
  const int buffers = 2 + states;
  for (int operand = 0; operand < buffers; ++operand) {
    context.require_same_type(operand, 0);
    if (context.type(operand).dtype != DType::kF32 || context.shape(operand).rank() != 1)
      context.fail("operand {} must be a flat f32 buffer", operand);
  }
  const Type scalar{DType::kF32, {}};
  if (context.type(buffers) != scalar || context.type(buffers + 1) != scalar ||
      context.type(buffers + 2) != Type{DType::kI64, {}})
    context.fail("the last operands must be scale f32[], lr f32[] and step i64[]");
  const auto& ranges = context.attributes().integers("no_decay");
  if (ranges.size() % 2 != 0) context.fail("no_decay lists pairs of begin and end; it has {} numbers", ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i)
    if (ranges[i] < (i == 0 ? 0 : ranges[i - 1]) || ranges[i] > context.shape(0).numel())
      context.fail("no_decay must rise and stay within the buffer; {} does not", ranges[i]);
  return std::vector<Type>(static_cast<size_t>(1 + states), context.type(0));
}

AttributeDef no_decay_attribute() {
  return {"no_decay", std::vector<int64_t>{}, "pairs [begin, end) of elements without weight decay"};
}

bool decays(const std::vector<int64_t>& no_decay, int64_t element) {
  for (size_t i = 0; i + 1 < no_decay.size(); i += 2)
    if (element >= no_decay[i] && element < no_decay[i + 1]) return false;
  return true;
}

std::vector<InplacePair> optimizer_inplace(int states) {
  std::vector<InplacePair> pairs{{0, 0}};
  for (int state = 0; state < states; ++state) pairs.push_back({2 + state, 1 + state});
  return pairs;
}

// Element-wise: any contiguous range of the flat buffers may live on any worker (ZeRO).
std::vector<ShardingSignature> shard_optimizer(const Graph&, const Node& node) {
  ShardingSignature split{std::vector<Placement>(node.inputs.size(), Placement::split(0)),
                          std::vector<Placement>(node.outputs.size(), Placement::split(0))};
  for (size_t i = node.inputs.size() - 3; i < node.inputs.size(); ++i) split.inputs[i] = Placement::replicate();
  return {{std::vector<Placement>(node.inputs.size()), std::vector<Placement>(node.outputs.size())}, split};
}

}  // namespace lockstep
