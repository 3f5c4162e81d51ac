// all_gather(x): the x of all workers of the group, one after another along an axis, on every worker.
#include "ops/collective.h"

namespace lockstep {

OpDef all_gather_op() {
  OpDef def = make_collective("all_gather", "all_gather_start", "all_gather_done",
                              "the shards of all workers of a group, joined along an axis",
                              {{"axis", int64_t{0}, "along which the shards are joined"}});
  def.infer = [](const InferContext& c) {
    const int axis = c.axis(c.attributes().integer("axis"), c.shape(0).rank());
    const Type& x = c.type(0);
    return std::vector<Type>{{x.dtype, x.shape.with(axis, x.shape[axis] * group_size(c))}};
  };
  def.gradient = [](GradientContext& c) -> std::vector<Value> {
    return {c.graph.emit("reduce_scatter", {c.grad()}, c.attributes())};
  };
  return def;
}

OpDef all_gather_start_op() { return make_start(all_gather_op()); }
OpDef all_gather_done_op() { return make_done(all_gather_op()); }

}  // namespace lockstep
