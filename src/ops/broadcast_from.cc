// broadcast_from(x): the root's x, on every worker of the group. What the others hand in does not matter.
#include "ops/collective.h"

namespace lockstep {

OpDef broadcast_from_op() {
  OpDef def = make_collective("broadcast_from", "broadcast_from_start", "broadcast_from_done",
                              "one worker's value on all of its group",
                              {{"root", int64_t{0}, "the worker that has it"}});
  def.infer = [](const InferContext& c) {
    require_worker(c, "root");
    return std::vector<Type>{c.type(0)};
  };
  def.gradient = [](GradientContext& c) -> std::vector<Value> {
    return {c.graph.emit("reduce_to", {c.grad()}, c.attributes())};
  };
  return def;
}

OpDef broadcast_from_start_op() { return make_start(broadcast_from_op()); }
OpDef broadcast_from_done_op() { return make_done(broadcast_from_op()); }

}  // namespace lockstep
