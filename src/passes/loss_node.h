// Where forward ends: the node that makes the loss of a differentiated training graph. What stands after it
// in program order is backward. Of a loss that is added up from parts it is the node that makes the first. A
// graph without gradients has none: -1; nor has a part of one, all of whose outputs are written to inputs.
#pragma once
#include "graph/graph.h"

namespace lockstep {

int32_t loss_node(const Graph& graph);

}  // namespace lockstep
