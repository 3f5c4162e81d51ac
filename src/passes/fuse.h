// fuse: pointwise ops that can run in one sweep become one node.
//
//   graph f(x: f32[8,64], b: f32[64]) {
//     bb = broadcast(b) {shape=[8,64]}
//     h = add(x, bb)
//     y = relu(h)
//     return y, h
//   }
// becomes
//   graph f(x: f32[8,64], b: f32[64]) {
//     h, y = fused(x, b) {program="t0 = add(a0, a1); t1 = relu(t0); return t0, t1", shape=[8,64]}
//     return y, h
//   }
// Constants become numbers in the program and broadcasts the way an operand is read. A sum or mean of one of
// the values joins as the node's last statement and first result (fused_sum). No bit of any result changes:
// fused kernels use the same scalar functions in the same order, round where the separate nodes would, and
// add as `sum` adds. Runs after autodiff and the simplifications; what it decides against, it explains under
// "fusion".
#pragma once
#include "passes/pipeline.h"

namespace lockstep {

Graph fuse(const Graph& graph, const PassOptions& options);

}  // namespace lockstep
