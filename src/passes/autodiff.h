// autodiff: appends the backward computation.
//
//   graph f(x: f32[4,2], w: f32[2,3] @param) { y = matmul(x, w)  loss = sum(y)  return loss }
// becomes
//   graph f(x: f32[4,2], w: f32[2,3] @param, grad.w: f32[2,3] @grad) {
//     y = matmul(x, w)  loss = sum(y)
//     one = constant() {value=1.0}  dy = broadcast(one) {shape=[4,3]}  dw = matmul(x, dy) {transpose_a=true}
//     return loss, grad.w <- dw
//   }
// The first output is the loss: a scalar sum, never a mean, so that the division by the count happens once,
// after all microbatches of all workers are added. Contributions to one value are added in the order backward
// meets its users, from the last to the first. With `accumulate`, gradients and statistics are added to what
// their inputs already hold. A @frozen parameter has no gradient, and nothing is computed for its sake alone;
// one of another type than f32 has its gradient in that type.
#pragma once
#include "graph/graph.h"

namespace lockstep {

struct AutodiffOptions {
  bool accumulate = false;
};

// Throws UserError when the loss is not a floating scalar or an op on the way has no gradient.
Graph differentiate(const Graph& forward, AutodiffOptions options = {});

std::string grad_name(std::string_view param);  // "grad." + param

}  // namespace lockstep
