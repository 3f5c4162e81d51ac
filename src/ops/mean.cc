// mean(a) {axes, keep}: the sum over axes divided once by the number of terms.
#include "ops/builder.h"
#include "ops/reduce_axes.h"

namespace lockstep {
namespace {

double terms_of(const Shape& from, const Shape& to) {
  return to.numel() == 0 ? 1.0 : static_cast<double>(from.numel()) / static_cast<double>(to.numel());
}

std::vector<Value> divided(Builder& b, Value sums, double terms) {
  return {b.div(sums, b.constant_like(terms, sums))};
}

}  // namespace

OpDef mean_op() {
  OpDef def{.name = "mean", .summary = "average over axes"};
  def.attributes = reduction_attributes();
  def.traits = {.reduction = true};
  def.infer = [](const InferContext& c) {
    c.require_floating(0);
    return infer_reduction(c);
  };
  def.gradient = [](GradientContext& c) {
    Builder b(c.graph);
    const Shape shape = c.type(c.in(0)).shape;
    const Shape kept = kept_shape(shape, reduced_axes(shape, c.attributes()));
    const Value share = divided(b, b.reshape(c.grad(), kept), terms_of(shape, kept))[0];
    return std::vector<Value>{b.broadcast(share, shape)};
  };
  def.decompose = [](Graph& graph, const Node& node, std::span<const Value> inputs) {
    Builder b(graph);
    const Value sums = b.op("sum", {inputs[0]}, node.attributes);
    return divided(b, sums, terms_of(b.shape(inputs[0]), b.shape(sums)));
  };
  def.sharding = [](const Graph& graph, const Node& node) { return shard_reduction(graph, node, false); };
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{static_cast<double>(graph.type(node.inputs[0]).shape.numel()), touched_bytes(graph, node)};
  };
  return def;
}

}  // namespace lockstep
