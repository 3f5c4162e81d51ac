// What slice, concat and split share: a tensor cut along one axis.
#pragma once
#include "graph/op_def.h"

namespace lockstep {

// Attribute `axis` of a node whose operand has this shape, counted from the front.
int piece_axis(const Shape& shape, const Attributes& attributes);
AttributeDef axis_attribute();

// Copies `extent` indices along axis: from index `from_begin` of one tensor to index `to_begin` of another.
// All other extents are equal.
void copy_piece(const RefTensor& from, int64_t from_begin, RefTensor& to, int64_t to_begin, int axis,
                int64_t extent);

// Splits over any other axis, all operands and results together; partial sums pass through, since pieces are
// linear.
std::vector<ShardingSignature> shard_pieces(const Graph& graph, const Node& node);

}  // namespace lockstep
