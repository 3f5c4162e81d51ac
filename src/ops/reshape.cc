// reshape(a) {shape}: the same elements in row-major order under another shape. A view: it costs nothing.
#include "ops/builder.h"

namespace lockstep {

OpDef reshape_op() {
  OpDef def{.name = "reshape", .summary = "the same elements under another shape"};
  def.attributes = {{"shape", std::vector<int64_t>{}, "extents of the result", true}};
  def.traits = {.view = true, .recompute_cheap = true};
  def.infer = [](const InferContext& c) {
    const Shape shape(c.attributes().integers("shape"));
    if (shape.numel() != c.shape(0).numel())
      c.fail("shape {} has {} elements, the operand has {}", to_string(shape), shape.numel(),
             c.shape(0).numel());
    return std::vector<Type>{{c.type(0).dtype, shape}};
  };
  def.gradient = [](GradientContext& c) {
    return std::vector<Value>{Builder(c.graph).reshape(c.grad(), c.type(c.in(0)).shape)};
  };
  def.reference = [](const ReferenceContext& c) { c.out().data = c.in(0).data; };
  def.sharding = [](const Graph& graph, const Node& node) {
    // Where as many elements lie before two axes, a part of one is the same elements as that part of the
    // other: heads of [B,T,H,D] are columns of [B,T,C]. Both extents must allow the split.
    std::vector<ShardingSignature> signatures{{{Placement::replicate()}, {Placement::replicate()}},
                                              {{Placement::partial()}, {Placement::partial()}}};
    const Shape& from = graph.type(node.inputs[0]).shape;
    const Shape& to = graph.type(node.outputs[0]).shape;
    for (int a = 0; a < from.rank(); ++a)
      for (int b = 0; b < to.rank(); ++b)
        if (from.product(0, a) == to.product(0, b) && from[a] > 1 && to[b] > 1)
          signatures.push_back({{Placement::split(a)}, {Placement::split(b)}});
    return signatures;
  };
  return def;
}

}  // namespace lockstep
