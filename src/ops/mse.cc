// mse(a, b) -> loss, count: the squared differences, summed, and the number of elements; their quotient is
// the mean.
#include "ops/builder.h"

namespace lockstep {
namespace {

std::vector<Value> gradient(GradientContext& c) {
  Builder b(c.graph);
  const Value difference = b.sub(c.in(0), c.in(1));
  const Value da = b.mul(difference, b.cast(b.scale(c.grad(), 2.0), c.type(difference).dtype));
  return {c.needed[0] ? da : Value{}, c.needed[1] ? b.neg(da) : Value{}};
}

std::vector<ShardingSignature> sharding(const Graph& graph, const Node& node) {
  const Placement whole = Placement::replicate();
  std::vector<ShardingSignature> signatures{{{whole, whole}, {whole, whole}}};
  for (int axis = 0; axis < graph.type(node.inputs[0]).shape.rank(); ++axis)
    signatures.push_back(
        {{Placement::split(axis), Placement::split(axis)}, {Placement::partial(), Placement::partial()}});
  return signatures;
}

}  // namespace

OpDef mse_op() {
  OpDef def{.name = "mse", .summary = "summed squared differences, and the count"};
  def.min_inputs = def.max_inputs = 2;
  def.traits = {.reduction = true};
  def.infer = [](const InferContext& c) {
    c.require_floating(0);
    c.require_same_type(1, 0);
    return std::vector<Type>{{DType::kF32, {}}, {DType::kI64, {}}};
  };
  def.gradient = gradient;
  def.reference = [](const ReferenceContext& c) {
    for (int64_t i = 0; i < c.in(0).numel(); ++i)
      c.out(0)[0] += (c.in(0)[i] - c.in(1)[i]) * (c.in(0)[i] - c.in(1)[i]);
    c.out(1)[0] = static_cast<double>(c.in(0).numel());
  };
  def.decompose = [](Graph& graph, const Node&, std::span<const Value> inputs) {
    Builder b(graph);
    const Value difference = b.cast(b.sub(inputs[0], inputs[1]), DType::kF32);
    const int64_t count = b.shape(difference).numel();
    const Value squares = b.reshape(b.mul(difference, difference), {count});
    return std::vector<Value>{b.sum(squares, {0}), b.constant(static_cast<double>(count), {DType::kI64, {}})};
  };
  def.sharding = sharding;
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{3.0 * static_cast<double>(graph.type(node.inputs[0]).shape.numel()),
                touched_bytes(graph, node)};
  };
  return def;
}

}  // namespace lockstep
