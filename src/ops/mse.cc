// mse(a, b[, weights]) -> loss, count: the squared differences, summed, and the number of elements; their
// quotient is the mean. With weights (f32, data and never a parameter's), the square of an element is
// multiplied by its weight.
#include "base/error.h"
#include "ops/builder.h"

namespace lockstep {
namespace {

std::vector<Value> gradient(GradientContext& c) {
  Builder b(c.graph);
  const bool weighted = c.needed.size() == 3;
  if (weighted && c.needed[2]) throw UserError("mse has no gradient for its weights");
  const Value difference = b.sub(c.in(0), c.in(1));
  const DType dtype = c.type(difference).dtype;
  Value da = b.mul(difference, b.cast(b.scale(c.grad(), 2.0), dtype));
  if (weighted) da = b.mul(da, b.cast(c.in(2), dtype));
  std::vector<Value> grads(c.needed.size());
  if (c.needed[0]) grads[0] = da;
  if (c.needed[1]) grads[1] = b.neg(da);
  return grads;
}

std::vector<ShardingSignature> sharding(const Graph& graph, const Node& node) {
  const Placement whole = Placement::replicate(), partial = Placement::partial();
  const size_t operands = node.inputs.size();
  std::vector<ShardingSignature> signatures{{std::vector<Placement>(operands, whole), {whole, whole}}};
  for (int axis = 0; axis < graph.type(node.inputs[0]).shape.rank(); ++axis)
    signatures.push_back({std::vector<Placement>(operands, Placement::split(axis)), {partial, partial}});
  return signatures;
}

}  // namespace

OpDef mse_op() {
  OpDef def{.name = "mse", .summary = "summed squared differences, and the count"};
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.traits = {.reduction = true};
  def.infer = [](const InferContext& c) {
    c.require_floating(0);
    c.require_same_type(1, 0);
    if (c.count() > 2 && c.type(2) != Type{DType::kF32, c.shape(0)})
      c.fail("operand 2 is {}; weights must be f32 and have the shape {} of what is compared",
             to_string(c.type(2)), to_string(c.shape(0)));
    return std::vector<Type>{{DType::kF32, {}}, {DType::kI64, {}}};
  };
  def.gradient = gradient;
  def.reference = [](const ReferenceContext& c) {
    for (int64_t i = 0; i < c.in(0).numel(); ++i)
      c.out(0)[0] +=
          (c.in(0)[i] - c.in(1)[i]) * (c.in(0)[i] - c.in(1)[i]) * (c.inputs.size() == 3 ? c.in(2)[i] : 1.0);
    c.out(1)[0] = static_cast<double>(c.in(0).numel());
  };
  def.decompose = [](Graph& graph, const Node&, std::span<const Value> inputs) {
    Builder b(graph);
    const Value difference = b.cast(b.sub(inputs[0], inputs[1]), DType::kF32);
    const int64_t count = b.shape(difference).numel();
    Value squares = b.mul(difference, difference);
    if (inputs.size() == 3) squares = b.mul(squares, inputs[2]);
    return std::vector<Value>{b.sum(b.reshape(squares, {count}), {0}),
                              b.constant(static_cast<double>(count), {DType::kI64, {}})};
  };
  def.sharding = sharding;
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{3.0 * static_cast<double>(graph.type(node.inputs[0]).shape.numel()),
                touched_bytes(graph, node)};
  };
  return def;
}

}  // namespace lockstep
