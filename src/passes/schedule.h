// schedule: puts the nodes into the order that keeps the fewest bytes alive.
//
//   graph f(x: f32[1024], grad.a: f32[1024] @grad, grad.b: f32[1024] @grad) {
//     da = exp(x)  db = tanh(x)  na = add(grad.a, da)  nb = add(grad.b, db)  return grad.a <- na, grad.b <-
//     nb
//   }
// becomes
//     da = exp(x)  na = add(grad.a, da)  db = tanh(x)  nb = add(grad.b, db)
// Three orders are simulated (passes/live_bytes.h) and the best is kept:
//   program  as it came;
//   eager    the same, but a node runs as soon as its operands are there if it frees at least what it takes.
//   Gradients
//            are added up as soon as they are known, so that they can be sent while backward goes on;
//   greedy   always the ready node that takes the fewest bytes more than it frees.
// In both of these a recomputed value, a view, a constant and the end of a collective wait until somebody
// reads them, and the start of a collective runs as soon as it can. Collectives keep their order. A graph
// with collectives is ordered eagerly, since fewer bytes would mean waiting for transfers instead of hiding
// them.
#pragma once
#include "graph/graph.h"
#include "passes/pipeline.h"

namespace lockstep {

Graph schedule(const Graph& graph, const PassOptions& options);

}  // namespace lockstep
