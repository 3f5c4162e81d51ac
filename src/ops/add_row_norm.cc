// Residual addition fused with the norm that follows it: the sum is written and normalised in one sweep.
#include "ops/row_norm.h"
#include "ops/shard_rows.h"

namespace lockstep {
namespace {

template <bool kCentered>
std::vector<Type> infer(const InferContext& c) {
  check_row_norm(c, 0, 2, kCentered);
  c.require_same_type(1, 0);
  const Type statistic = row_statistic(c.type(0));
  if (kCentered) return {c.type(0), c.type(0), statistic, statistic};
  return {c.type(0), c.type(0), statistic};
}

// x and r receive the same gradient: what reaches the sum directly plus what comes through the norm.
template <bool kCentered>
std::vector<Value> gradient(GradientContext& c) {
  const Value dsum = c.grad(0);
  const Value dy = c.grad(1);
  std::vector<Value> grads(c.node.inputs.size());
  if (!dy.valid()) {
    grads[0] = grads[1] = dsum;
    return grads;
  }
  std::vector<Value> operands{dy, c.out(0), c.in(2), c.out(2)};
  if (kCentered) operands.push_back(c.out(3));
  if (dsum.valid()) operands.push_back(dsum);
  const std::vector<Value> results =
      c.graph.emit_all(kCentered ? "layer_norm_grad" : "rms_norm_grad", operands);
  grads[0] = grads[1] = results[0];
  for (size_t i = 1; i < results.size(); ++i) grads[i + 1] = results[i];
  return grads;
}

template <bool kCentered>
std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  const Value sum = graph.emit("add", {inputs[0], inputs[1]});
  std::vector<Value> operands(inputs.begin() + 1, inputs.end());
  operands[0] = sum;
  std::vector<Value> results =
      graph.emit_all(kCentered ? "layer_norm" : "rms_norm", operands, node.attributes);
  results.insert(results.begin(), sum);
  return results;
}

template <bool kCentered>
OpDef make() {
  OpDef def;
  def.attributes = {{"epsilon", 1e-5, "added to the variance before the square root"}};
  def.min_inputs = def.max_inputs = kCentered ? 4 : 3;
  def.infer = infer<kCentered>;
  def.gradient = gradient<kCentered>;
  def.decompose = decompose<kCentered>;
  def.sharding = [](const Graph& graph, const Node& node) {
    return shard_rows(graph.type(node.inputs[0]).shape.rank() - 1, kCentered ? "rrww" : "rrw",
                      kCentered ? "rrrr" : "rrr");
  };
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{9.0 * static_cast<double>(graph.type(node.inputs[0]).shape.numel()),
                touched_bytes(graph, node)};
  };
  def.inplace = {{0, 0}, {1, 0}};
  return def;
}

}  // namespace

OpDef add_row_norm_op(bool centered) { return centered ? make<true>() : make<false>(); }

}  // namespace lockstep
