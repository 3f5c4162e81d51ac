#include "ops/axis_pieces.h"

namespace lockstep {

int piece_axis(const Shape& shape, const Attributes& attributes) {
  const int64_t axis = attributes.integer("axis");
  return static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
}

AttributeDef axis_attribute() { return {"axis", int64_t{0}, "the axis; negative counts from the end", true}; }

void copy_piece(const RefTensor& from, int64_t from_begin, RefTensor& to, int64_t to_begin, int axis,
                int64_t extent) {
  const int64_t outer = to.shape().product(0, axis);
  const int64_t inner = to.shape().product(axis + 1, to.shape().rank());
  const int64_t count = extent * inner;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < count; ++i)
      to[(o * to.shape()[axis] + to_begin) * inner + i] =
          from[(o * from.shape()[axis] + from_begin) * inner + i];
}

std::vector<ShardingSignature> shard_pieces(const Graph& graph, const Node& node) {
  const auto same = [&](Placement placement) {
    return ShardingSignature{std::vector<Placement>(node.inputs.size(), placement),
                             std::vector<Placement>(node.outputs.size(), placement)};
  };
  std::vector<ShardingSignature> signatures{same(Placement::replicate()), same(Placement::partial())};
  const Shape& shape = graph.type(node.inputs[0]).shape;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (axis != piece_axis(shape, node.attributes)) signatures.push_back(same(Placement::split(axis)));
  return signatures;
}

}  // namespace lockstep
