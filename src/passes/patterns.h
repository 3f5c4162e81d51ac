// patterns: groups of ops become one op that has a kernel of its own. Each pattern is a file in
// passes/patterns/.
//
//   graph f(a: f32[8,4], d: f32[8,2], grad.w: f32[4,2] @grad) {
//     dw = matmul(a, d) {transpose_a=true}  n = add(grad.w, dw)  return grad.w <- n
//   }
// becomes
//     n = matmul(a, d, grad.w) {transpose_a=true}  return grad.w <- n
// Three lists: import patterns run before autodiff, since what they make has a better gradient than its parts
// (attention); library patterns run after it and also see the backward computation. Products that are
// accumulated into their destination, or keep the fp32 sums of 16-bit operands, round differently from the
// separate ops. Norm patterns change no bit, and join the end of one block with the beginning of the next:
// the stages of a pipeline are cut before them, since both addends would be sent instead of one sum.
#pragma once
#include "graph/graph.h"
#include "passes/pipeline.h"

namespace lockstep {

Graph apply_import_patterns(const Graph& graph, const PassOptions& options);
Graph apply_library_patterns(const Graph& graph, const PassOptions& options);
Graph apply_norm_patterns(const Graph& graph, const PassOptions& options);

}  // namespace lockstep
