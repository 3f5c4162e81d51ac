// Which parameter a graph value belongs to, for messages: a node deep inside a layer says little by itself,
// the layer's weight says where it is.
#pragma once
#include <string>

#include "graph/graph.h"

namespace lockstep {

// For a parameter and for a gradient on its way into a @grad input, that parameter. For other values the
// nearest one that the producing node depends on, counting nodes but not those that only move data; if it
// depends on none, the nearest one among the operands of the nodes that use it. Empty if there is none at
// all.
std::string nearest_parameter(const Graph& graph, Value value);

}  // namespace lockstep
