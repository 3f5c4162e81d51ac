// argmax(a) {axis}: the first index of the largest element along an axis, as i32. A NaN is larger than
// everything.
#include <cmath>

#include "ops/axis_pieces.h"
#include "ops/reduce_axes.h"

namespace lockstep {

OpDef argmax_op() {
  OpDef def{.name = "argmax", .summary = "first index of the largest element along an axis"};
  def.attributes = {{"axis", int64_t{-1}, "the axis that goes away; negative counts from the end"}};
  def.gradient_is_zero = true;
  def.infer = [](const InferContext& c) {
    c.require_floating(0);
    const int axis = c.axis(c.attributes().integer("axis"), c.shape(0).rank());
    if (c.shape(0)[axis] == 0) c.fail("axis {} is empty and has no largest element", axis);
    return std::vector<Type>{{DType::kI32, c.shape(0).without(axis)}};
  };
  def.reference = [](const ReferenceContext& c) {
    const RefTensor& a = c.in(0);
    const ReductionSplit split = split_reduction(a.shape(), {piece_axis(a.shape(), c.attributes)});
    for (int64_t o = 0; o < split.outer; ++o)
      for (int64_t i = 0; i < split.inner; ++i) {
        const auto at = [&](int64_t r) { return a[(o * split.reduced + r) * split.inner + i]; };
        int64_t best = 0;
        for (int64_t r = 1; r < split.reduced; ++r)
          if (!std::isnan(at(best)) && !(at(r) <= at(best))) best = r;
        c.out()[o * split.inner + i] = static_cast<double>(best);
      }
  };
  def.sharding = [](const Graph& graph, const Node& node) {
    const Shape& shape = graph.type(node.inputs[0]).shape;
    const int reduced = piece_axis(shape, node.attributes);
    std::vector<ShardingSignature> signatures{{{Placement::replicate()}, {Placement::replicate()}}};
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (axis != reduced)
        signatures.push_back(
            {{Placement::split(axis)}, {Placement::split(axis < reduced ? axis : axis - 1)}});
    return signatures;
  };
  return def;
}

}  // namespace lockstep
