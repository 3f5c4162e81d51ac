// gather_params: parameters that workers own pieces of (ZeRO-3) are gathered unit by unit just before they
// are used, and forgotten after.
//
//   y = matmul(x, w)            with w and b of unit 0, v of unit 1
//   z = matmul(y, v)
// becomes
//   unit0_start = gather_unit_start {unit=0, ...}
//   unit0 = gather_unit_done(unit0_start) {unit=0}
//   unit1_start = gather_unit_start {unit=1, ...}         while unit 0 is used
//   w = unit_part(unit0) {param="w", offset=0, shape=[..], ...}
//   y = matmul(x, w)
//   unit1 = gather_unit_done(unit1_start) {unit=1}
//   v = unit_part(unit1) {param="v", ...}
//   z = matmul(y, v)
// A unit stays as long as no other is used in between: through the end of forward and the beginning of
// backward, the last one is gathered once. Everywhere else backward gathers it again, and so does what is
// recomputed. One unit is gathered ahead of its use, never more: memory for two of them is all it takes.
//
// What is computed from the parameters of one unit alone (their copies in bf16) is computed again in each of
// its stays; kept from forward to backward it would be as much as the parameters themselves. All of it is the
// same operations on the same operands, so no bit changes. Runs after schedule, whose order says what
// "before" is. The parameters are no inputs of the graph any more.
#pragma once
#include "graph/graph.h"
#include "passes/pipeline.h"

namespace lockstep {

Graph gather_params(const Graph& graph, const PassOptions& options);

}  // namespace lockstep
