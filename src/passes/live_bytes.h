// How many bytes a graph keeps alive when it runs in program order; what orders are compared by.
//
// The rules are those of the memory plan: a view has no bytes of its own, a result takes over the buffer of
// an operand that dies with its node where the op allows it, an update of a graph input is written in place
// when nobody reads the input later. Workspaces of kernels are not known here and not counted.
#pragma once
#include <cstdint>
#include <span>

#include "graph/graph.h"

namespace lockstep {

int64_t peak_live_bytes(const Graph& graph);
// The same where its nodes run in another order.
int64_t peak_live_bytes(const Graph& graph, std::span<const int32_t> order);

// Which values share a buffer because one is a view of the other: the first value of the chain, per value.
std::vector<Value> view_origins(const Graph& graph);

}  // namespace lockstep
