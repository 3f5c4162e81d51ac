// The `fused` op as others see it.
#pragma once
#include "graph/graph.h"

namespace lockstep {

inline constexpr int kMaxFusedOperands = 16;
inline constexpr int kMaxFusedResults = 8;

// The program of a fused node as a graph of its own: one input per operand, then broadcasts, constants,
// pointwise ops and perhaps a last sum or mean.
Graph fused_body(const Graph& graph, const Node& node);

}  // namespace lockstep
