// simplify: folds constants and removes operations that do nothing.
//
//   graph f(x: f32[4,3]) {
//     one = constant() {value=1.0}  ones = broadcast(one) {shape=[4,3]}  a = mul(x, ones)
//     b = reshape(a) {shape=[12]}   c = reshape(b) {shape=[3,4]}         return c
//   }
// becomes
//   graph f(x: f32[4,3]) { c = reshape(x) {shape=[3,4]}  return c }
// The rules stand in passes/simplify/. None of them changes a bit of any result, with two exceptions that are
// part of what the ops mean: a sum or mean over axes of extent 1 passes its only element through (a kernel
// may turn -0 into +0), and a NaN may keep another payload. Rewritings that would round differently (x*a*b,
// pow(x, 2), folding exp) are left out. Markers that only the recompute pass reads (checkpoint) go away here
// unless it will read them.
#pragma once
#include "graph/graph.h"

namespace lockstep {

struct SimplifyOptions {
  bool keep_checkpoints = false;
};

Graph simplify(const Graph& graph, SimplifyOptions options = {});

}  // namespace lockstep
