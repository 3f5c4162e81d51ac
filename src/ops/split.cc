// split(a) {axis, sizes}: the operand cut into consecutive pieces along an axis, one result each.
#include <numeric>

#include "ops/axis_pieces.h"
#include "ops/builder.h"

namespace lockstep {
namespace {

std::vector<Type> infer(const InferContext& c) {
  const Shape& shape = c.shape(0);
  const int axis = c.axis(c.attributes().integer("axis"), shape.rank());
  const std::vector<int64_t>& sizes = c.attributes().integers("sizes");
  if (sizes.empty()) c.fail("sizes is empty; give the extent of each piece");
  std::vector<Type> types;
  for (const int64_t size : sizes) {
    if (size < 0) c.fail("sizes [{}] has a negative extent", fmt::join(sizes, ","));
    types.push_back({c.type(0).dtype, shape.with(axis, size)});
  }
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (total != shape[axis])
    c.fail("sizes [{}] add up to {}, axis {} has {}", fmt::join(sizes, ","), total, axis, shape[axis]);
  return types;
}

std::vector<Value> gradient(GradientContext& c) {
  Builder b(c.graph);
  std::vector<Value> pieces;
  for (size_t i = 0; i < c.node.outputs.size(); ++i)
    pieces.push_back(c.output_gradients[i].valid() ? c.output_gradients[i]
                                                   : b.constant_like(0.0, c.node.outputs[i]));
  if (pieces.size() == 1) return pieces;
  return c.graph.emit_all("concat", pieces, {{"axis", c.attributes().integer("axis")}});
}

}  // namespace

OpDef split_op() {
  OpDef def{.name = "split", .summary = "consecutive pieces along an axis"};
  def.attributes = {axis_attribute(), {"sizes", std::vector<int64_t>{}, "extent of each piece", true}};
  def.traits = {.recompute_cheap = true};
  def.infer = infer;
  def.gradient = gradient;
  def.reference = [](const ReferenceContext& c) {
    const int axis = piece_axis(c.in(0).shape(), c.attributes);
    int64_t begin = 0;
    for (RefTensor& piece : c.outputs) {
      copy_piece(c.in(0), begin, piece, 0, axis, piece.shape()[axis]);
      begin += piece.shape()[axis];
    }
  };
  def.decompose = [](Graph& graph, const Node& node, std::span<const Value> inputs) {
    Builder b(graph);
    const int axis = piece_axis(b.shape(inputs[0]), node.attributes);
    std::vector<Value> pieces;
    int64_t begin = 0;
    for (const int64_t size : node.attributes.integers("sizes")) {
      pieces.push_back(b.slice(inputs[0], axis, begin, begin + size));
      begin += size;
    }
    return pieces;
  };
  def.sharding = shard_pieces;
  return def;
}

}  // namespace lockstep
