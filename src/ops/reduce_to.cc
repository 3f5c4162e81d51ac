// reduce_to(x): the sum of x over the group on the root, zero on the others.
#include "ops/collective.h"

namespace lockstep {

OpDef reduce_to_op() {
  OpDef def = make_collective("reduce_to", "reduce_to_start", "reduce_to_done",
                              "sum over a group on one of its workers",
                              {{"root", int64_t{0}, "the worker that gets it"}});
  def.infer = [](const InferContext& c) {
    require_worker(c, "root");
    require_summable(c);
    return std::vector<Type>{c.type(0)};
  };
  def.gradient = [](GradientContext& c) -> std::vector<Value> {
    return {c.graph.emit("broadcast_from", {c.grad()}, c.attributes())};
  };
  return def;
}

OpDef reduce_to_start_op() { return make_start(reduce_to_op()); }
OpDef reduce_to_done_op() { return make_done(reduce_to_op()); }

}  // namespace lockstep
