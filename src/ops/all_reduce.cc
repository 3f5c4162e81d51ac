// all_reduce(x): the sum of x over the group, on every worker of it.
#include "ops/collective.h"

namespace lockstep {

OpDef all_reduce_op() {
  OpDef def =
      make_collective("all_reduce", "all_reduce_start", "all_reduce_done", "sum over a group of workers");
  def.infer = [](const InferContext& c) {
    group_size(c);
    require_summable(c);
    return std::vector<Type>{c.type(0)};
  };
  // Every worker's x is a term of every worker's result.
  def.gradient = [](GradientContext& c) -> std::vector<Value> {
    return {c.graph.emit("all_reduce", {c.grad()}, c.attributes())};
  };
  return def;
}

OpDef all_reduce_start_op() { return make_start(all_reduce_op()); }
OpDef all_reduce_done_op() { return make_done(all_reduce_op()); }

}  // namespace lockstep
