// softmax(x) {axis} and log_softmax(x) {axis}, with gradients that need only the result: softmax_grad(y, dy)
// and log_softmax_grad(y, dy).
#include <cmath>

#include "ops/builder.h"

namespace lockstep {
namespace {

std::vector<AttributeDef> axis_attribute() { return {{"axis", int64_t{-1}, "the axis that sums to one"}}; }

int axis_of(const Shape& shape, const Attributes& attributes) {
  const int64_t axis = attributes.integer("axis");
  return static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
}

std::vector<Type> infer(const InferContext& c) {
  c.require_floating(0);
  if (c.count() == 2) c.require_same_type(1, 0);
  const int axis = c.axis(c.attributes().integer("axis"), c.shape(0).rank());
  if (c.shape(0)[axis] == 0) c.fail("axis {} is empty; it must hold at least one element", axis);
  return {c.type(0)};
}

// Calls body(first, stride, count) for every row along the axis.
template <typename Body>
void for_each_row(const ReferenceContext& c, const Body& body) {
  const Shape& shape = c.in(0).shape();
  const int axis = axis_of(shape, c.attributes);
  const int64_t inner = shape.product(axis + 1, shape.rank());
  for (int64_t outer = 0; outer < shape.product(0, axis); ++outer)
    for (int64_t i = 0; i < inner; ++i) body(outer * shape[axis] * inner + i, inner, shape[axis]);
}

template <bool kLog>
void reference(const ReferenceContext& c) {
  for_each_row(c, [&](int64_t first, int64_t stride, int64_t count) {
    double highest = -INFINITY;
    for (int64_t i = 0; i < count; ++i) highest = std::fmax(highest, c.in(0)[first + i * stride]);
    double total = 0;
    for (int64_t i = 0; i < count; ++i) total += std::exp(c.in(0)[first + i * stride] - highest);
    for (int64_t i = 0; i < count; ++i) {
      const double x = c.in(0)[first + i * stride] - highest;
      c.out()[first + i * stride] = kLog ? x - std::log(total) : std::exp(x) / total;
    }
  });
}

template <bool kLog>
void reference_grad(const ReferenceContext& c) {
  for_each_row(c, [&](int64_t first, int64_t stride, int64_t count) {
    double sum = 0;
    for (int64_t i = first; i < first + count * stride; i += stride)
      sum += (kLog ? 1.0 : c.in(0)[i]) * c.in(1)[i];
    for (int64_t i = first; i < first + count * stride; i += stride)
      c.out()[i] = kLog ? c.in(1)[i] - std::exp(c.in(0)[i]) * sum : c.in(0)[i] * (c.in(1)[i] - sum);
  });
}

template <bool kLog>
std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const DType dtype = b.type(inputs[0]).dtype;
  const Value x = b.cast(inputs[0], DType::kF32);
  const int64_t axis = axis_of(b.shape(x), node.attributes);
  const Value shifted = b.sub(x, b.max(x, {axis}, true));
  const Value total = b.sum(b.exp(shifted), {axis}, true);
  return {b.cast(kLog ? b.sub(shifted, b.log(total)) : b.div(b.exp(shifted), total), dtype)};
}

template <bool kLog>
std::vector<Value> decompose_grad(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const DType dtype = b.type(inputs[0]).dtype;
  const Value y = b.cast(inputs[0], DType::kF32), dy = b.cast(inputs[1], DType::kF32);
  const int64_t axis = axis_of(b.shape(y), node.attributes);
  const Value total = b.sum(kLog ? dy : b.mul(y, dy), {axis}, true);
  return {b.cast(kLog ? b.sub(dy, b.mul(b.exp(y), total)) : b.mul(y, b.sub(dy, total)), dtype)};
}

// Any axis but the normalised one can be split.
std::vector<ShardingSignature> sharding(const Graph& graph, const Node& node) {
  const Shape& shape = graph.type(node.inputs[0]).shape;
  std::vector<ShardingSignature> signatures;
  for (int axis = -1; axis < shape.rank(); ++axis) {
    if (axis == axis_of(shape, node.attributes)) continue;
    const Placement part = axis < 0 ? Placement::replicate() : Placement::split(axis);
    signatures.push_back({std::vector<Placement>(node.inputs.size(), part), {part}});
  }
  return signatures;
}

Cost cost(const Graph& graph, const Node& node) {
  return {13.0 * static_cast<double>(graph.type(node.inputs[0]).shape.numel()), touched_bytes(graph, node)};
}

template <bool kLog>
OpDef forward(std::string_view name, std::string_view summary) {
  OpDef def{.name = name, .summary = summary, .attributes = axis_attribute()};
  def.traits = {.recompute_cheap = true};
  def.infer = infer;
  def.gradient = [](GradientContext& c) {
    const char* op = kLog ? "log_softmax_grad" : "softmax_grad";
    return std::vector<Value>{c.graph.emit(op, {c.out(0), c.grad()}, c.attributes())};
  };
  def.reference = reference<kLog>;
  def.decompose = decompose<kLog>;
  def.sharding = sharding;
  def.cost = cost;
  def.inplace = {{0, 0}};
  return def;
}

template <bool kLog>
OpDef backward(std::string_view name, std::string_view summary) {
  OpDef def{.name = name, .summary = summary, .attributes = axis_attribute()};
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer;
  def.reference = reference_grad<kLog>;
  def.decompose = decompose_grad<kLog>;
  def.sharding = sharding;
  def.cost = cost;
  def.inplace = {{1, 0}, {0, 0}};
  return def;
}

}  // namespace

OpDef softmax_op() { return forward<false>("softmax", "e^x, divided by its sum along an axis"); }
OpDef log_softmax_op() {
  return forward<true>("log_softmax", "x minus the logarithm of the sum of e^x along an axis");
}
OpDef softmax_grad_op() { return backward<false>("softmax_grad", "gradient of softmax, from its result"); }
OpDef log_softmax_grad_op() {
  return backward<true>("log_softmax_grad", "gradient of log_softmax, from its result");
}

}  // namespace lockstep
