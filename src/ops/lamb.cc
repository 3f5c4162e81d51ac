// lamb(p, g, m, v, scale, lr, step): Adam whose step is scaled per tensor by |p| / |update| (arXiv
// 1904.00962).
//
// Elements outside the segments are padding: they and their moments stay as they are. The ratio is 1 where
// either norm is zero.
#include <cmath>

#include "ops/optimizer.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  std::vector<Type> types = infer_optimizer(c, 2);
  require_ranges(c, "segments");
  const auto& segments = c.attributes().integers("segments");
  if (segments.empty()) c.fail("segments is empty: list [begin, end) of every tensor in the buffer");
  for (size_t i = 0; i < segments.size(); i += 2) require_one_decay(c, segments[i], segments[i + 1]);
  return types;
}

void update_tensor(const ReferenceContext& c, int64_t begin, int64_t end) {
  const auto [scale, lr, t] = ReferenceStep(c);
  const double beta1 = c.attributes.number("beta1");
  const double beta2 = c.attributes.number("beta2");
  const double correction1 = 1.0 - std::pow(beta1, t);
  const double correction2 = 1.0 - std::pow(beta2, t);
  const bool decay = decays(c.attributes.integers("no_decay"), begin);
  std::vector<double> update;
  double p_squares = 0;
  double u_squares = 0;
  for (int64_t i = begin; i < end; ++i) {
    const double g = c.in(1)[i] * scale;
    const double m = c.out(1)[i] = beta1 * c.in(2)[i] + (1.0 - beta1) * g;
    const double v = c.out(2)[i] = beta2 * c.in(3)[i] + (1.0 - beta2) * g * g;
    const double u = m / correction1 / (std::sqrt(v / correction2) + c.attributes.number("epsilon")) +
                     (decay ? c.attributes.number("weight_decay") * c.in(0)[i] : 0.0);
    update.push_back(u);
    p_squares += c.in(0)[i] * c.in(0)[i];
    u_squares += u * u;
  }
  const double trust = p_squares > 0 && u_squares > 0 ? std::sqrt(p_squares) / std::sqrt(u_squares) : 1.0;
  for (int64_t i = begin; i < end; ++i)
    c.out(0)[i] = c.in(0)[i] - lr * trust * update[static_cast<size_t>(i - begin)];
}

void reference(const ReferenceContext& c) {
  c.out(0).data = c.in(0).data;
  c.out(1).data = c.in(2).data;
  c.out(2).data = c.in(3).data;
  const auto& segments = c.attributes.integers("segments");
  for (size_t i = 0; i < segments.size(); i += 2) update_tensor(c, segments[i], segments[i + 1]);
}

}  // namespace

OpDef lamb_op() {
  OpDef def{.name = "lamb", .summary = "Adam with a trust ratio per tensor, over flat buffers"};
  def.attributes = {
      {"beta1", 0.9, "decay of the first moment"},
      {"beta2", 0.999, "decay of the second moment"},
      {"epsilon", 1e-6, "added to the denominator"},
      {"weight_decay", 0.01, "times the parameter, added to the update before the trust ratio"},
      {"segments", std::vector<int64_t>{}, "pairs [begin, end): the tensors in the buffer", true},
      no_decay_attribute()};
  def.min_inputs = def.max_inputs = 7;
  def.infer = infer;
  def.reference = reference;
  def.sharding = shard_whole_tensors;
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{18.0 * static_cast<double>(graph.type(node.inputs[0]).shape.numel()),
                touched_bytes(graph, node)};
  };
  def.inplace = optimizer_inplace(2);
  return def;
}

}  // namespace lockstep
