// What sum, mean, max and argmax share: which axes go away.
#pragma once
#include <vector>

#include "graph/op_def.h"

namespace lockstep {

// Attribute `axes`, resolved, checked for duplicates and sorted; an empty list means every axis.
std::vector<int> reduced_axes(const InferContext& context);
std::vector<int> reduced_axes(const Shape& shape, const Attributes& attributes);
// The result's shape when the axes are kept with extent 1, and when they are dropped.
Shape kept_shape(const Shape& shape, const std::vector<int>& axes);
Shape dropped_shape(const Shape& shape, const std::vector<int>& axes);
// A tensor whose reduced axes are adjacent, seen as [outer, reduced, inner].
struct ReductionSplit {
  int64_t outer = 1;
  int64_t reduced = 1;
  int64_t inner = 1;
};
// `axes` sorted; kept axes of extent 1 may stand between them.
ReductionSplit split_reduction(const Shape& shape, const std::vector<int>& axes);
std::vector<AttributeDef> reduction_attributes();
std::vector<Type> infer_reduction(const InferContext& context);
// Splitting an axis that stays splits the result; splitting one that is summed leaves partial sums if
// `partial`.
std::vector<ShardingSignature> shard_reduction(const Graph& graph, const Node& node, bool partial);

}  // namespace lockstep
