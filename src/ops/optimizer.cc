#include "ops/optimizer.h"

#include "ops/rounded_update.h"

namespace lockstep {

std::vector<Type> infer_optimizer(const InferContext& context, int states) {
  if (rounding_operand(context) >= 0) return infer_rounded_update(context, states);
  if (context.count() != 2 + states + 3)
    context.fail("operand {} must be rounding i64[2]: seed and position", 2 + states);
  for (int operand = 0; operand < 2 + states; ++operand) {
    context.require_same_type(operand, 0);
    require_flat(context, operand);
  }
  require_step_scalars(context);
  require_ranges(context, "no_decay");
  const Attribute* draws = context.attributes().find("draws");
  if (draws != nullptr && !std::get<std::vector<int64_t>>(*draws).empty())
    context.fail("draws are given but no rounding i64[2] before scale; drop one of them");
  return std::vector<Type>(static_cast<size_t>(1 + states), context.type(0));
}

void require_flat(const InferContext& context, int operand) {
  if (context.type(operand).dtype != DType::kF32 || context.shape(operand).rank() != 1)
    context.fail("operand {} must be a flat f32 buffer", operand);
}

void require_step_scalars(const InferContext& context) {
  const int first = context.count() - 3;
  const Type scalar{DType::kF32, {}};
  if (context.type(first) != scalar || context.type(first + 1) != scalar ||
      context.type(first + 2) != Type{DType::kI64, {}})
    context.fail("the last operands must be scale f32[], lr f32[] and step i64[]");
}

void require_ranges(const InferContext& context, std::string_view attribute) {
  const auto& ranges = context.attributes().integers(attribute);
  if (ranges.size() % 2 != 0)
    context.fail("{} lists pairs of begin and end; it has {} numbers", attribute, ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i)
    if (ranges[i] < (i == 0 ? 0 : ranges[i - 1]) || ranges[i] > context.shape(0).numel())
      context.fail("{} must rise and stay within the buffer; {} does not", attribute, ranges[i]);
}

void require_one_decay(const InferContext& context, int64_t begin, int64_t end) {
  for (const int64_t edge : context.attributes().integers("no_decay"))
    if (edge > begin && edge < end)
      context.fail("no_decay has an edge at {}, inside the tensor [{}, {}); decay all of it or nothing", edge,
                   begin, end);
}

AttributeDef no_decay_attribute() {
  return {"no_decay", std::vector<int64_t>{}, "pairs [begin, end) of elements without weight decay"};
}

bool decays(const std::vector<int64_t>& no_decay, int64_t element) {
  for (size_t i = 0; i + 1 < no_decay.size(); i += 2)
    if (element >= no_decay[i] && element < no_decay[i + 1]) return false;
  return true;
}

ReferenceStep::ReferenceStep(const ReferenceContext& context) {
  const auto first = static_cast<int>(context.inputs.size()) - 3;
  scale = context.in(first).scalar();
  lr = context.in(first + 1).scalar();
  t = context.in(first + 2).scalar();
}

namespace {

Value decay_of(Builder& b, const Attributes& attributes, int64_t numel) {
  const double decay = attributes.number("weight_decay");
  const auto& ranges = attributes.integers("no_decay");
  if (ranges.empty() || decay == 0) return b.constant(decay, {DType::kF32, {}});
  std::vector<Value> pieces;
  const auto add = [&](double value, int64_t begin, int64_t end) {
    if (end > begin) pieces.push_back(b.constant(value, {DType::kF32, {end - begin}}));
  };
  int64_t reached = 0;
  for (size_t i = 0; i < ranges.size(); i += 2) {
    add(decay, reached, ranges[i]);
    add(0, ranges[i], ranges[i + 1]);
    reached = ranges[i + 1];
  }
  add(decay, reached, numel);
  return pieces.size() == 1 ? pieces[0] : b.graph().emit_all("concat", pieces, {{"axis", int64_t{0}}})[0];
}

}  // namespace

DecomposedStep::DecomposedStep(Builder& builder, const Node& node, std::span<const Value> inputs)
    : p(inputs[0]),
      gradient(builder.mul(inputs[1], inputs[inputs.size() - 3])),
      lr(inputs[inputs.size() - 2]),
      t(builder.cast(inputs[inputs.size() - 1], DType::kF32)),
      decay(decay_of(builder, node.attributes, builder.shape(p).numel())) {}

Value moved(Builder& builder, double a, Value old_value, Value new_value) {
  return builder.add(builder.scale(old_value, a), builder.scale(new_value, 1.0 - a));
}

Value adam_direction(Builder& builder, const Attributes& attributes, Value m, Value v, Value t) {
  const auto correction = [&](std::string_view beta) {
    const Value power = builder.op("pow", {builder.constant_like(attributes.number(beta), t), t});
    return builder.sub(builder.constant_like(1.0, t), power);
  };
  const Value deviation = builder.div(builder.sqrt(v), builder.sqrt(correction("beta2")));
  return builder.div(builder.div(m, correction("beta1")),
                     builder.shift(deviation, attributes.number("epsilon")));
}

std::vector<InplacePair> optimizer_inplace(int states) {
  std::vector<InplacePair> pairs{{0, 0}};
  for (int state = 0; state < states; ++state) pairs.push_back({2 + state, 1 + state});
  return pairs;
}

std::vector<ShardingSignature> shard_optimizer(const Graph& graph, const Node& node) {
  ShardingSignature split{std::vector<Placement>(node.inputs.size(), Placement::split(0)),
                          std::vector<Placement>(node.outputs.size(), Placement::split(0))};
  for (size_t i = node.inputs.size() - 3; i < node.inputs.size(); ++i)
    split.inputs[i] = Placement::replicate();
  std::vector<ShardingSignature> signatures = shard_whole_tensors(graph, node);
  if (rounding_operand(graph, node.inputs) >= 0) return signatures;  // draws count from the beginning too
  // Ranges count from the beginning of the whole buffer.
  const Attribute* ranges = node.attributes.find("no_decay");
  if (ranges == nullptr || std::get<std::vector<int64_t>>(*ranges).empty()) signatures.push_back(split);
  return signatures;
}

std::vector<ShardingSignature> shard_whole_tensors(const Graph&, const Node& node) {
  return {{std::vector<Placement>(node.inputs.size()), std::vector<Placement>(node.outputs.size())}};
}

}  // namespace lockstep
