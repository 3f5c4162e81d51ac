// dce: removes the nodes that no output needs.
//
//   graph f(x: f32[4]) { a = neg(x)  b = exp(x)  return b }
// becomes
//   graph f(x: f32[4]) { b = exp(x)  return b }
// A node with several results stays while one of them is needed. Collectives stay, with all they read:
// another worker waits for its part of them. Inputs stay, since the caller binds them by name.
#pragma once
#include "graph/graph.h"

namespace lockstep {

Graph remove_dead_nodes(Graph graph);

}  // namespace lockstep
