// sum(a) {axes, keep}: adds up over axes, in index order within fixed blocks.
#include "ops/builder.h"
#include "ops/indexing.h"
#include "ops/reduce_axes.h"

namespace lockstep {

OpDef sum_op() {
  OpDef def{.name = "sum", .summary = "adds up over axes"};
  def.attributes = reduction_attributes();
  def.traits = {.reduction = true};
  def.infer = infer_reduction;
  def.gradient = [](GradientContext& c) {
    Builder b(c.graph);
    const Shape shape = c.type(c.in(0)).shape;
    const Shape kept = kept_shape(shape, reduced_axes(shape, c.attributes()));
    return std::vector<Value>{b.broadcast(b.reshape(c.grad(), kept), shape)};
  };
  def.reference = [](const ReferenceContext& c) {
    const Shape& shape = c.in(0).shape();
    const Strides strides = broadcast_strides(kept_shape(shape, reduced_axes(shape, c.attributes)), shape);
    for_each_index(shape, [&](std::span<const int64_t> index, int64_t flat) {
      c.out()[offset_of(index, strides)] += c.in(0)[flat];
    });
  };
  def.sharding = [](const Graph& graph, const Node& node) { return shard_reduction(graph, node, true); };
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{static_cast<double>(graph.type(node.inputs[0]).shape.numel()), touched_bytes(graph, node)};
  };
  return def;
}

}  // namespace lockstep
