// lower: gives every node of a graph a kernel of a backend. A node that no kernel takes is replaced by what
// its op decomposes into, as often as it takes; so a backend can run every model before it has a kernel for
// every op. Runs after the passes and before memory is planned.
//
//   y, mean, rstd = layer_norm(x, w, b)          m = mean(x) {axes=[-1], keep=true}
//                                        ->      d = sub(x, broadcast(m)) ...
//
// A decomposition may round differently than the kernel of another backend would. Where a backend has kernels
// for all nodes, the graph stays as it is.
#pragma once
#include <string>
#include <vector>

#include "backend/backend.h"

namespace lockstep {

// A node that was replaced, with the kernels that refused it.
struct Replacement {
  int32_t first_node = 0;  // of the lowered graph
  int32_t end_node = 0;
  std::string node;
  std::vector<Refusal> refusals;
};

struct Lowered {
  Graph graph;
  std::vector<KernelChoice> choices;  // per node; without a kernel for views
  std::vector<Replacement> replaced;
};

// Throws UserError that names every op that has neither a kernel nor a decomposition, with all refusals.
Lowered lower(Graph graph, Backend& backend);

}  // namespace lockstep
