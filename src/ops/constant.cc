// constant {value, shape, dtype}: a tensor filled with one number. Folded into whatever reads it where
// possible.
#include "graph/op_def.h"

namespace lockstep {

OpDef constant_op() {
  OpDef def{.name = "constant", .summary = "a tensor filled with one number"};
  def.attributes = {{"value", 0.0, "the number", true},
                    {"shape", std::vector<int64_t>{}, "extents of the result"},
                    {"dtype", DType::kF32, "element type of the result"}};
  def.min_inputs = def.max_inputs = 0;
  def.traits = {.recompute_cheap = true};
  def.infer = [](const InferContext& c) {
    return std::vector<Type>{{c.attributes().dtype("dtype"), Shape(c.attributes().integers("shape"))}};
  };
  def.reference = [](const ReferenceContext& c) {
    for (double& x : c.out().data) x = c.attributes.number("value");
  };
  def.sharding = [](const Graph& graph, const Node& node) {
    std::vector<ShardingSignature> signatures{{{}, {Placement::replicate()}}};
    for (int axis = 0; axis < graph.type(node.outputs[0]).shape.rank(); ++axis)
      signatures.push_back({{}, {Placement::split(axis)}});
    return signatures;
  };
  return def;
}

}  // namespace lockstep
