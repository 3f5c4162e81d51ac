// max(a) {axes, keep}: the largest element over adjacent axes, NaN if there is one; and max_grad(a, dy)
// {axes}: dy at the first position of the largest element, 0 elsewhere. Axes that are not adjacent are
// reduced one after another.
#include <cmath>

#include "ops/builder.h"
#include "ops/reduce_axes.h"

namespace lockstep {
namespace {

void check_axes(const InferContext& c) {
  const Shape& shape = c.shape(0);
  c.require_floating(0);
  int last = -1;
  for (const int axis : reduced_axes(c)) {
    if (shape[axis] == 0) c.fail("axis {} is empty and has no largest element", axis);
    if (shape[axis] == 1) continue;
    if (last >= 0 && shape.product(last + 1, axis) != 1)
      c.fail("axes {} and {} are not adjacent; use one max after another", last, axis);
    last = axis;
  }
}

// Calls body(position in a, position in the result) in row-major order of a.
template <typename Body>
void for_each_term(const Shape& shape, const Attributes& attributes, const Body& body) {
  const ReductionSplit split = split_reduction(shape, reduced_axes(shape, attributes));
  for (int64_t o = 0; o < split.outer; ++o)
    for (int64_t r = 0; r < split.reduced; ++r)
      for (int64_t i = 0; i < split.inner; ++i)
        body((o * split.reduced + r) * split.inner + i, o * split.inner + i);
}

// Positions of the first largest elements, by the order in which a NaN is larger than everything.
std::vector<int64_t> first_largest(const RefTensor& a, const Attributes& attributes, int64_t results) {
  std::vector<int64_t> best(static_cast<size_t>(results), -1);
  for_each_term(a.shape(), attributes, [&](int64_t from, int64_t to) {
    int64_t& at = best[static_cast<size_t>(to)];
    if (at < 0 || (!std::isnan(a[at]) && !(a[from] <= a[at]))) at = from;
  });
  return best;
}

Cost one_look_each(const Graph& graph, const Node& node) {
  return {static_cast<double>(graph.type(node.inputs[0]).shape.numel()), touched_bytes(graph, node)};
}

}  // namespace

OpDef max_op() {
  OpDef def{.name = "max", .summary = "largest element over adjacent axes"};
  def.attributes = reduction_attributes();
  def.traits = {.reduction = true};
  def.infer = [](const InferContext& c) {
    check_axes(c);
    return infer_reduction(c);
  };
  def.gradient = [](GradientContext& c) {
    const Attribute axes = c.attributes().integers("axes");
    const Shape& shape = c.type(c.in(0)).shape;
    const Value grad =
        Builder(c.graph).reshape(c.grad(), kept_shape(shape, reduced_axes(shape, c.attributes())));
    return std::vector<Value>{c.graph.emit("max_grad", {c.in(0), grad}, {{"axes", axes}})};
  };
  def.reference = [](const ReferenceContext& c) {
    const auto best = first_largest(c.in(0), c.attributes, c.out().numel());
    for (int64_t i = 0; i < c.out().numel(); ++i) c.out()[i] = c.in(0)[best[static_cast<size_t>(i)]];
  };
  def.sharding = [](const Graph& graph, const Node& node) { return shard_reduction(graph, node, false); };
  def.cost = one_look_each;
  return def;
}

OpDef max_grad_op() {
  OpDef def{.name = "max_grad", .summary = "gradient of max: dy where the first largest element is"};
  def.attributes = {reduction_attributes()[0]};
  def.min_inputs = def.max_inputs = 2;
  def.infer = [](const InferContext& c) {
    check_axes(c);
    const Type wanted{c.type(0).dtype, kept_shape(c.shape(0), reduced_axes(c))};
    if (c.type(1) != wanted) c.fail("operand 1 must be {}: the reduced axes are kept", to_string(wanted));
    return std::vector<Type>{c.type(0)};
  };
  def.reference = [](const ReferenceContext& c) {
    const auto best = first_largest(c.in(0), c.attributes, c.in(1).numel());
    for (int64_t i = 0; i < c.in(1).numel(); ++i) c.out()[best[static_cast<size_t>(i)]] = c.in(1)[i];
  };
  def.sharding = [](const Graph& graph, const Node& node) {
    const Shape& shape = graph.type(node.inputs[0]).shape;
    std::vector<ShardingSignature> signatures;
    const auto add = [&](Placement p) { signatures.push_back({{p, p}, {p}}); };
    add(Placement::replicate());
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (graph.type(node.inputs[1]).shape[axis] == shape[axis]) add(Placement::split(axis));
    return signatures;
  };
  def.cost = one_look_each;
  return def;
}

}  // namespace lockstep
