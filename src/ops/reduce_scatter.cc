// reduce_scatter(x): the sum of x over the group, of which each worker keeps its shard along an axis.
#include "ops/collective.h"

namespace lockstep {

OpDef reduce_scatter_op() {
  OpDef def = make_collective("reduce_scatter", "reduce_scatter_start", "reduce_scatter_done",
                              "a shard of the sum over a group of workers",
                              {{"axis", int64_t{0}, "along which the sum is cut into shards"}});
  def.infer = [](const InferContext& c) {
    require_summable(c);
    const int axis = c.axis(c.attributes().integer("axis"), c.shape(0).rank());
    const int64_t size = group_size(c);
    const Type& x = c.type(0);
    if (x.shape[axis] % size != 0)
      c.fail("axis {} has extent {}, which {} workers cannot share evenly; pad it to {}", axis, x.shape[axis],
             size, (x.shape[axis] + size - 1) / size * size);
    return std::vector<Type>{{x.dtype, x.shape.with(axis, x.shape[axis] / size)}};
  };
  def.gradient = [](GradientContext& c) -> std::vector<Value> {
    return {c.graph.emit("all_gather", {c.grad()}, c.attributes())};
  };
  return def;
}

OpDef reduce_scatter_start_op() { return make_start(reduce_scatter_op()); }
OpDef reduce_scatter_done_op() { return make_done(reduce_scatter_op()); }

}  // namespace lockstep
