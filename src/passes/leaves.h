// leaves: what the leaves of a split model (model/tensor_leaves.h) share and add up becomes plain values,
// sums of a worker's own leaves, and collectives.
//
//   x0, x1 = spread(x) {leaves=2, size=2}
//   a = matmul(x0, w0)   b = matmul(x1, w1)
//   y = leaf_sum(a, b) {size=2}
// becomes
//   a = matmul(x, w0)   b = matmul(x, w1)
//   y_own = leaf_sum(a, b) {wide=true}
//   y = all_reduce(y_own) {group="tensor", size=2}     cast to the leaves' type, where that is not f32
//
// and a cross_entropy_leaves its parts, one for each leaf, gathered from all workers and joined by everyone
// (ops/cross_entropy_leaves.cc).
//
// It runs after autodiff, which gives every spread a leaf_sum of its gradients. A worker's leaves are a
// subtree of the tree over all of them, and all_reduce adds these up by the tree over the workers: every
// number of workers makes the same additions, and rounds once.
#pragma once
#include "graph/graph.h"
#include "passes/pipeline.h"

namespace lockstep {

Graph lower_leaves(const Graph& graph, const PassOptions& options);

}  // namespace lockstep
