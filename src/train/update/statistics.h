// Running statistics: averages over steps of what a model measures in each microbatch, such as the means and
// variances of its batch norms.
//
// The M microbatches of a step are summed by the canonical tree, in the buffer of the gradients and behind
// them; the root moves the averages once:
//
//   running = running + (1 - (1 - momentum)^M) (sum / M - running)
//
// which forgets as much as M moves by `momentum` would. So they are a function of the step and do not depend
// on which worker had which microbatch, or in what order. With M = 1 this is what PyTorch does. A step that
// is skipped leaves them as they were.
#pragma once
#include "graph/graph.h"
#include "runtime/flat.h"

namespace lockstep {

// Inputs: statistics @state and sums @grad, both f32[layout.statistics_numel()]. The padding stays zero.
Graph build_statistics_update(const FlatLayout& layout, int64_t microbatches, double momentum);

}  // namespace lockstep
