// lion(p, g, m, scale, lr, step): the sign of an interpolated momentum, with decoupled weight decay (arXiv
// 2302.06675).
#include "ops/optimizer.h"
#include "ops/rounded_update.h"

namespace lockstep {
namespace {

void reference(const ReferenceContext& c) {
  const auto [scale, lr, t] = ReferenceStep(c);
  const double beta1 = c.attributes.number("beta1");
  const double beta2 = c.attributes.number("beta2");
  for (int64_t i = 0; i < c.in(0).numel(); ++i) {
    const double g = c.in(1)[i] * scale;
    const double direction = beta1 * c.in(2)[i] + (1.0 - beta1) * g;
    const double sign = direction > 0 ? 1.0 : direction < 0 ? -1.0 : 0.0;
    const bool decay = decays(c.attributes.integers("no_decay"), i);
    c.out(0)[i] = c.in(0)[i] * (decay ? 1.0 - lr * c.attributes.number("weight_decay") : 1.0) - lr * sign;
    c.out(1)[i] = beta2 * c.in(2)[i] + (1.0 - beta2) * g;
  }
  round_results(c);
}

std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  if (rounding_operand(graph, inputs) >= 0) return decompose_rounded(graph, node, inputs);
  Builder b(graph);
  const DecomposedStep step(b, node, inputs);
  const Value direction = moved(b, node.attributes.number("beta1"), inputs[2], step.gradient);
  const Value kept = b.mul(step.p, b.shift(b.neg(b.mul(step.decay, step.lr)), 1.0));
  return {b.sub(kept, b.mul(b.op("sign", {direction}), step.lr)),
          moved(b, node.attributes.number("beta2"), inputs[2], step.gradient)};
}

}  // namespace

OpDef lion_op() {
  OpDef def{.name = "lion", .summary = "sign of the momentum with decoupled weight decay, over flat buffers"};
  def.attributes = {{"beta1", 0.9, "weight of the momentum in the direction"},
                    {"beta2", 0.99, "decay of the momentum"},
                    {"weight_decay", 0.0, "times lr, taken off the parameter"},
                    no_decay_attribute(),
                    draws_attribute()};
  def.min_inputs = 6;
  def.max_inputs = 7;
  def.infer = [](const InferContext& c) { return infer_optimizer(c, 1); };
  def.reference = reference;
  def.decompose = decompose;
  def.sharding = shard_optimizer;
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{9.0 * static_cast<double>(graph.type(node.inputs[0]).shape.numel()),
                touched_bytes(graph, node)};
  };
  def.inplace = optimizer_inplace(1);
  return def;
}

}  // namespace lockstep
