// cse: computes common subexpressions once.
//
//   graph f(x: f32[4]) { a = exp(x)  b = exp(x)  c = mul(a, b)  return c }
// becomes
//   graph f(x: f32[4]) { a = exp(x)  c = mul(a, a)  return c }
// Two nodes are the same when op, operands and attributes are; add and mul also when their operands are
// swapped, which gives the same bits. Random ops are functions of their operands and may be merged;
// collectives are not, and neither are nodes that recompute something on purpose (see passes/recompute.h).
#pragma once
#include "graph/graph.h"

namespace lockstep {

Graph merge_common_subexpressions(const Graph& graph);

}  // namespace lockstep
