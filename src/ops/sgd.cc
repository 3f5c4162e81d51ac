// sgd(p, g, [buf,] scale, lr, step): gradient descent with weight decay in the gradient (L2) and, where buf
// is given, momentum, in PyTorch's formulation without dampening.
#include <algorithm>

#include "ops/optimizer.h"
#include "ops/rounded_update.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  const int states = c.count() - (rounding_operand(c) >= 0 ? 6 : 5);
  const bool momentum = c.attributes().number("momentum") != 0.0;
  if (momentum && states == 0) c.fail("momentum needs a buffer: sgd(p, g, buf, scale, lr, step)");
  if (!momentum && states == 1) c.fail("a momentum buffer is given but momentum is 0; drop one of them");
  if (!momentum && c.attributes().flag("nesterov")) c.fail("nesterov needs momentum > 0");
  return infer_optimizer(c, std::min(states, 1));
}

void reference(const ReferenceContext& c) {
  const auto [scale, lr, t] = ReferenceStep(c);
  const double momentum = c.attributes.number("momentum");
  for (int64_t i = 0; i < c.in(0).numel(); ++i) {
    const bool decay = decays(c.attributes.integers("no_decay"), i);
    const double g = c.in(1)[i] * scale + (decay ? c.attributes.number("weight_decay") * c.in(0)[i] : 0.0);
    double direction = g;
    if (momentum != 0.0) {
      const double buf = c.out(1)[i] = momentum * c.in(2)[i] + g;
      direction = c.attributes.flag("nesterov") ? g + momentum * buf : buf;
    }
    c.out(0)[i] = c.in(0)[i] - lr * direction;
  }
  round_results(c);
}

std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  if (rounding_operand(graph, inputs) >= 0) return decompose_rounded(graph, node, inputs);
  Builder b(graph);
  const DecomposedStep step(b, node, inputs);
  const Value g = b.add(step.gradient, b.mul(step.p, step.decay));
  const double momentum = node.attributes.number("momentum");
  if (momentum == 0) return {b.sub(step.p, b.mul(g, step.lr))};
  const Value buf = b.add(b.scale(inputs[2], momentum), g);
  const Value direction = node.attributes.flag("nesterov") ? b.add(g, b.scale(buf, momentum)) : buf;
  return {b.sub(step.p, b.mul(direction, step.lr)), buf};
}

}  // namespace

OpDef sgd_op() {
  OpDef def{.name = "sgd", .summary = "gradient descent with optional momentum, over flat buffers"};
  def.attributes = {{"momentum", 0.0, "decay of the momentum buffer; 0: none is kept"},
                    {"nesterov", false, "look ahead along the momentum"},
                    {"weight_decay", 0.0, "times the parameter, added to the gradient"},
                    no_decay_attribute(),
                    draws_attribute()};
  def.min_inputs = 5;
  def.max_inputs = 7;
  def.infer = infer;
  def.reference = reference;
  def.decompose = decompose;
  def.sharding = shard_optimizer;
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{6.0 * static_cast<double>(graph.type(node.inputs[0]).shape.numel()),
                touched_bytes(graph, node)};
  };
  def.inplace = optimizer_inplace(1);
  return def;
}

}  // namespace lockstep
