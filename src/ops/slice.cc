// slice(a) {axis, begin, end}: indices [begin, end) along one axis.
#include "ops/axis_pieces.h"
#include "ops/builder.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  const Shape& shape = c.shape(0);
  const int axis = c.axis(c.attributes().integer("axis"), shape.rank());
  const int64_t begin = c.attributes().integer("begin");
  const int64_t end = c.attributes().integer("end");
  if (begin < 0 || begin > end || end > shape[axis])
    c.fail("[{}, {}) is not a range of axis {}, whose indices are [0, {})", begin, end, axis, shape[axis]);
  return {{c.type(0).dtype, shape.with(axis, end - begin)}};
}

std::vector<Value> gradient(GradientContext& c) {
  const Shape& shape = c.type(c.in(0)).shape;
  const int axis = piece_axis(shape, c.attributes());
  std::vector<int64_t> low(static_cast<size_t>(shape.rank()), 0);
  std::vector<int64_t> high = low;
  low[static_cast<size_t>(axis)] = c.attributes().integer("begin");
  high[static_cast<size_t>(axis)] = shape[axis] - c.attributes().integer("end");
  return {c.graph.emit("pad", {c.grad()}, {{"low", low}, {"high", high}})};
}

}  // namespace

OpDef slice_op() {
  OpDef def{.name = "slice", .summary = "a range of indices along one axis"};
  def.attributes = {axis_attribute(),
                    {"begin", int64_t{0}, "first index", true},
                    {"end", int64_t{0}, "one past the last index", true}};
  def.traits = {.recompute_cheap = true};
  def.infer = infer;
  def.gradient = gradient;
  def.reference = [](const ReferenceContext& c) {
    const int axis = piece_axis(c.in(0).shape(), c.attributes);
    copy_piece(c.in(0), c.attributes.integer("begin"), c.out(), 0, axis, c.out().shape()[axis]);
  };
  def.sharding = shard_pieces;
  def.cost = [](const Graph& graph, const Node& node) {
    return Cost{0, 2.0 * static_cast<double>(graph.type(node.outputs[0]).bytes())};
  };
  return def;
}

}  // namespace lockstep
