// product_epilogues: a product takes along what follows it, on backends whose products can (options say so).
//
//   y = add(matmul(x, w), broadcast(bias))               linear(x, w, bias)
//   y = add(r, add(matmul(x, w), broadcast(bias)))       linear(x, w, bias, r)
//   y = add(r, matmul(x, w))                             matmul(x, w, r)
//   d = gelu_grad(pre, matmul(dy, w)) {tanh}             matmul_gelu_grad(dy, w, pre)
//
// for 16-bit operands: the sums are rounded once instead of after every op. Runs before parts of forward are
// chosen to be computed again, so that recomputation repeats these products and changes no bit.
#pragma once
#include "passes/pipeline.h"

namespace lockstep {

Graph take_product_epilogues(const Graph& graph, const PassOptions& options);

}  // namespace lockstep
