// split_collectives: every collective becomes a start and a done, which schedule then moves apart.
//
//   y = all_reduce(x) {group="data", size=4}
// becomes
//   y_start = all_reduce_start(x) {group="data", size=4}
//   y = all_reduce_done(y_start, x)
// The done reads x as well, so that nothing overwrites x while it is being sent.
#pragma once
#include "graph/graph.h"
#include "passes/pipeline.h"

namespace lockstep {

Graph split_collectives(const Graph& graph, const PassOptions& options = {});

}  // namespace lockstep
