// broadcast(a) {shape}: repeats a along new leading axes and axes of extent 1 (NumPy's rule).
#include "ops/builder.h"
#include "ops/indexing.h"

namespace lockstep {

OpDef broadcast_op() {
  OpDef def{.name = "broadcast", .summary = "repeats along new leading axes and axes of extent 1"};
  def.attributes = {{"shape", std::vector<int64_t>{}, "extents of the result", true}};
  def.traits = {.recompute_cheap = true};
  def.infer = [](const InferContext& c) {
    const Shape target(c.attributes().integers("shape"));
    Shape common;
    if (!broadcast_shapes(c.shape(0), target, &common) || common != target)
      c.fail("{} does not broadcast to {}; every extent must be equal or 1", to_string(c.shape(0)),
             to_string(target));
    return std::vector<Type>{{c.type(0).dtype, target}};
  };
  def.gradient = [](GradientContext& c) {
    return std::vector<Value>{Builder(c.graph).sum_to(c.grad(), c.type(c.in(0)).shape)};
  };
  def.reference = [](const ReferenceContext& c) {
    const Shape& to = c.out().shape();
    const auto strides = broadcast_strides(c.in(0).shape(), to);
    for_each_index(to, [&](std::span<const int64_t> index, int64_t flat) {
      c.out()[flat] = c.in(0)[offset_of(index, strides)];
    });
  };
  def.sharding = [](const Graph& graph, const Node& node) {
    const Shape& from = graph.type(node.inputs[0]).shape;
    const Shape& to = graph.type(node.outputs[0]).shape;
    std::vector<ShardingSignature> signatures{{{Placement::replicate()}, {Placement::replicate()}}};
    for (int axis = 0; axis < to.rank(); ++axis) {
      const int source = axis - (to.rank() - from.rank());
      const bool repeated = source < 0 || from[source] != to[axis];
      signatures.push_back(
          {{repeated ? Placement::replicate() : Placement::split(source)}, {Placement::split(axis)}});
    }
    return signatures;
  };
  return def;
}

}  // namespace lockstep
