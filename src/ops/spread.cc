// spread(x) {leaves, group, size}: x for each of this worker's leaves of a model that is split into such
// (model/tensor_leaves.h). What it means is its gradient: leaves give one each, which are added up as
// leaf_sum adds, over the leaves of all workers of the group.
#include "ops/builder.h"
#include "ops/collective.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  group_size(c);
  const int64_t leaves = c.attributes().integer("leaves");
  constexpr int64_t kMostLeaves = 1024;
  if (leaves < 1 || leaves > kMostLeaves)
    c.fail("leaves is {}; it must be from 1 to {}", leaves, kMostLeaves);
  return std::vector<Type>(static_cast<size_t>(leaves), c.type(0));
}

std::vector<Value> gradient(GradientContext& c) {
  Builder b(c.graph);
  std::vector<Value> leaves;
  for (size_t i = 0; i < c.node.outputs.size(); ++i)
    leaves.push_back(c.output_gradients[i].valid() ? c.output_gradients[i]
                                                   : b.constant_like(0.0, c.node.outputs[i]));
  return c.graph.emit_all("leaf_sum", leaves, same_group(c.attributes()));
}

}  // namespace

OpDef spread_op() {
  OpDef def{.name = "spread", .summary = "a value for each leaf, whose gradients are added up by a tree"};
  def.attributes = {{"leaves", int64_t{1}, "results: this worker's leaves", true},
                    {"group", std::string("tensor"), "the workers that share the leaves"},
                    {"size", int64_t{1}, "how many they are"}};
  def.traits = {.recompute_cheap = true};
  def.infer = infer;
  def.gradient = gradient;
  def.reference = [](const ReferenceContext& c) {
    for (RefTensor& leaf : c.outputs) leaf.data = c.in(0).data;
  };
  def.decompose = [](Graph&, const Node& node, std::span<const Value> inputs) {
    return std::vector<Value>(node.outputs.size(), inputs[0]);
  };
  return def;
}

}  // namespace lockstep
