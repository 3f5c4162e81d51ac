// leaf_sum(a, b, ...): the sum of leaves by the binary tree over their indices, in f32, rounded once at the
// end: ((a + b) + (c + d)) + e. A lone one goes up unchanged.
//
// With a group of several workers each has as many leaves, which follow each other: the sum is over all of
// them. The pass `leaves` makes that a sum of a worker's own and a collective. No pass takes the additions
// apart, so they are the same ones wherever a leaf is.
#include "ops/builder.h"
#include "ops/collective.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  group_size(c);
  c.require_floating(0);
  for (int i = 1; i < c.count(); ++i) c.require_same_type(i, 0);
  Type type = c.type(0);
  if (c.attributes().flag("wide")) type.dtype = DType::kF32;
  return {type};
}

// Neighbours are added level by level.
template <typename Leaf, typename Add>
Leaf tree_sum(std::vector<Leaf> leaves, const Add& add) {
  while (leaves.size() > 1) {
    size_t next = 0;
    for (size_t i = 0; i < leaves.size(); i += 2)
      leaves[next++] = i + 1 < leaves.size() ? add(leaves[i], leaves[i + 1]) : leaves[i];
    leaves.resize(next);
  }
  return leaves[0];
}

}  // namespace

OpDef leaf_sum_op() {
  OpDef def{.name = "leaf_sum", .summary = "sum of leaves by the binary tree over their indices"};
  def.attributes = {{"group", std::string("tensor"), "the workers that share the leaves"},
                    {"size", int64_t{1}, "how many they are"},
                    {"wide", false, "the result is f32, whatever the leaves are"}};
  def.max_inputs = OpDef::kVariadic;
  def.infer = infer;
  def.gradient = [](GradientContext& c) {
    Value gradient = c.grad();
    if (c.attributes().flag("wide")) gradient = Builder(c.graph).cast(gradient, c.type(c.in(0)).dtype);
    return std::vector<Value>(c.node.inputs.size(), gradient);
  };
  def.reference = [](const ReferenceContext& c) {
    for (int64_t i = 0; i < c.out().shape().numel(); ++i) {
      std::vector<double> leaves;
      for (const RefTensor* leaf : c.inputs) leaves.push_back((*leaf)[i]);
      c.out()[i] = tree_sum(leaves, [](double a, double b) { return a + b; });
    }
  };
  def.decompose = [](Graph& graph, const Node& node, std::span<const Value> inputs) {
    Builder b(graph);
    std::vector<Value> leaves;
    for (const Value leaf : inputs) leaves.push_back(b.cast(leaf, DType::kF32));
    const Value sum = tree_sum(leaves, [&](Value a, Value c) { return b.op("add", {a, c}); });
    return std::vector<Value>{node.attributes.flag("wide") ? sum : b.cast(sum, b.type(inputs[0]).dtype)};
  };
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{static_cast<double>(node.inputs.size() - 1) *
                    static_cast<double>(graph.type(node.outputs[0]).shape.numel()),
                touched_bytes(graph, node)};
  };
  return def;
}

}  // namespace lockstep
