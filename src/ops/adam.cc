// adam(p, g, m, v, scale, lr, step): Adam (Kingma & Ba), weight decay added to the gradient, in PyTorch's
// formulation.
#include <cmath>

#include "ops/optimizer.h"
#include "ops/rounded_update.h"

namespace lockstep {
namespace {

void reference(const ReferenceContext& c) {
  const auto [scale, lr, t] = ReferenceStep(c);
  const double beta1 = c.attributes.number("beta1");
  const double beta2 = c.attributes.number("beta2");
  const double correction1 = 1.0 - std::pow(beta1, t);
  const double correction2 = 1.0 - std::pow(beta2, t);
  for (int64_t i = 0; i < c.in(0).numel(); ++i) {
    const double decay =
        decays(c.attributes.integers("no_decay"), i) ? c.attributes.number("weight_decay") : 0.0;
    const double g = c.in(1)[i] * scale + decay * c.in(0)[i];
    const double m = beta1 * c.in(2)[i] + (1.0 - beta1) * g;
    const double v = beta2 * c.in(3)[i] + (1.0 - beta2) * g * g;
    c.out(0)[i] = c.in(0)[i] - lr / correction1 * m /
                                   (std::sqrt(v) / std::sqrt(correction2) + c.attributes.number("epsilon"));
    c.out(1)[i] = m;
    c.out(2)[i] = v;
  }
  round_results(c);
}

std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  if (rounding_operand(graph, inputs) >= 0) return decompose_rounded(graph, node, inputs);
  Builder b(graph);
  const auto [p, scaled, lr, t, decay] = DecomposedStep(b, node, inputs);
  const Value g = b.add(scaled, b.mul(p, decay));
  const Value m = moved(b, node.attributes.number("beta1"), inputs[2], g);
  const Value v = moved(b, node.attributes.number("beta2"), inputs[3], b.mul(g, g));
  return {b.sub(p, b.mul(adam_direction(b, node.attributes, m, v, t), lr)), m, v};
}

}  // namespace

OpDef adam_op() {
  OpDef def{.name = "adam", .summary = "Adam with weight decay in the gradient (L2), over flat buffers"};
  def.attributes = {{"beta1", 0.9, "decay of the first moment"},
                    {"beta2", 0.999, "decay of the second moment"},
                    {"epsilon", 1e-8, "added to the denominator"},
                    {"weight_decay", 0.0, "times the parameter, added to the gradient"},
                    no_decay_attribute(),
                    draws_attribute()};
  def.min_inputs = 7;
  def.max_inputs = 8;
  def.infer = [](const InferContext& c) { return infer_optimizer(c, 2); };
  def.reference = reference;
  def.decompose = decompose;
  def.sharding = shard_optimizer;
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{12.0 * static_cast<double>(graph.type(node.inputs[0]).shape.numel()),
                touched_bytes(graph, node)};
  };
  def.inplace = optimizer_inplace(2);
  return def;
}

}  // namespace lockstep
