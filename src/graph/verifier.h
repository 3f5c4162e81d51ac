// Checks that a graph is well formed for the stage it has reached. Runs after every pass.
#pragma once
#include "graph/op_def.h"

namespace lockstep {

// Throws InternalError naming the node: a graph that was built through Graph::emit and fails here is our bug.
void verify(const Graph& graph, Stage stage);

}  // namespace lockstep
