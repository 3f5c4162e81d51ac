// checkpoint(a) = a, marked: a place where the recompute policy `block` may forget what came before.
//
// Model builders put one on the residual stream at each block's input. Under policy block, only marked values
// are kept for backward and what lies between two marks is computed again (passes/recompute.h). Under the
// other policies the mark is dropped before anything looks at the graph. A view: it costs nothing and never
// reaches a backend.
#include "ops/builder.h"

namespace lockstep {

OpDef checkpoint_op() {
  OpDef def{.name = "checkpoint", .summary = "marks a value to be kept when blocks are recomputed"};
  def.traits = {.view = true, .recompute_cheap = true};
  def.infer = [](const InferContext& c) { return std::vector<Type>{c.type(0)}; };
  def.gradient = [](GradientContext& c) { return std::vector<Value>{c.grad()}; };
  def.reference = [](const ReferenceContext& c) { c.out().data = c.in(0).data; };
  def.sharding = [](const Graph& graph, const Node& node) {
    std::vector<ShardingSignature> signatures{{{Placement::replicate()}, {Placement::replicate()}},
                                              {{Placement::partial()}, {Placement::partial()}}};
    for (int axis = 0; axis < graph.type(node.outputs[0]).shape.rank(); ++axis)
      signatures.push_back({{Placement::split(axis)}, {Placement::split(axis)}});
    return signatures;
  };
  return def;
}

}  // namespace lockstep
