// pad(a) {low, high, value}: a surrounded by `low` indices before and `high` after it along each axis, filled
// with value.
#include "ops/builder.h"
#include "ops/indexing.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  const auto rank = static_cast<size_t>(c.shape(0).rank());
  const std::vector<int64_t>& low = c.attributes().integers("low");
  const std::vector<int64_t>& high = c.attributes().integers("high");
  if (low.size() != rank || high.size() != rank)
    c.fail("low has {} entries and high {}; give one for each of the {} axes", low.size(), high.size(), rank);
  std::vector<int64_t> extents(c.shape(0).begin(), c.shape(0).end());
  for (size_t axis = 0; axis < rank; ++axis) {
    if (low[axis] < 0 || high[axis] < 0)
      c.fail("a negative amount along axis {}; use slice to take away", axis);
    extents[axis] += low[axis] + high[axis];
  }
  return {{c.type(0).dtype, Shape(extents)}};
}

std::vector<Value> gradient(GradientContext& c) {
  Builder b(c.graph);
  const Shape shape = c.type(c.in(0)).shape;
  Value grad = c.grad();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t begin = c.attributes().integers("low")[static_cast<size_t>(axis)];
    if (b.shape(grad)[axis] != shape[axis]) grad = b.slice(grad, axis, begin, begin + shape[axis]);
  }
  return {grad};
}

void reference(const ReferenceContext& c) {
  const Strides strides = c.out().shape().strides();
  for (double& x : c.out().data) x = c.attributes.number("value");
  const int64_t origin = offset_of(c.attributes.integers("low"), strides);
  for_each_index(c.in(0).shape(), [&](std::span<const int64_t> index, int64_t flat) {
    c.out()[origin + offset_of(index, strides)] = c.in(0)[flat];
  });
}

std::vector<Value> decompose(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  Value x = inputs[0];
  for (int axis = 0; axis < b.shape(x).rank(); ++axis) {
    std::vector<Value> pieces{x};
    const auto filled = [&](std::string_view side) {
      const int64_t extent = node.attributes.integers(side)[static_cast<size_t>(axis)];
      return b.constant(node.attributes.number("value"), {b.type(x).dtype, b.shape(x).with(axis, extent)});
    };
    if (node.attributes.integers("low")[static_cast<size_t>(axis)] > 0)
      pieces.insert(pieces.begin(), filled("low"));
    if (node.attributes.integers("high")[static_cast<size_t>(axis)] > 0) pieces.push_back(filled("high"));
    if (pieces.size() > 1) x = graph.emit_all("concat", pieces, {{"axis", int64_t{axis}}})[0];
  }
  return {x};
}

// Axes that are not padded may be split. Padding with anything but 0 does not commute with adding partial
// sums.
std::vector<ShardingSignature> sharding(const Graph& graph, const Node& node) {
  std::vector<ShardingSignature> signatures{{{Placement::replicate()}, {Placement::replicate()}}};
  if (node.attributes.number("value") == 0.0)
    signatures.push_back({{Placement::partial()}, {Placement::partial()}});
  const Shape& from = graph.type(node.inputs[0]).shape;
  const Shape& to = graph.type(node.outputs[0]).shape;
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from[axis] == to[axis]) signatures.push_back({{Placement::split(axis)}, {Placement::split(axis)}});
  return signatures;
}

}  // namespace

OpDef pad_op() {
  OpDef def{.name = "pad", .summary = "surrounds with a constant"};
  def.attributes = {{"low", std::vector<int64_t>{}, "indices added before, per axis", true},
                    {"high", std::vector<int64_t>{}, "indices added after, per axis", true},
                    {"value", 0.0, "what is added"}};
  def.traits = {.recompute_cheap = true};
  def.infer = infer;
  def.gradient = gradient;
  def.reference = reference;
  def.decompose = decompose;
  def.sharding = sharding;
  return def;
}

}  // namespace lockstep
