// batches: several batches in one run of a graph whose parameters are gathered in units (evaluation): each
// unit is gathered once for all of them, and not once for each.
//
//   h = matmul(x, w)            with w of unit 0, v of unit 1
//   y = matmul(h, v)
// becomes, for two batches,
//   h = matmul(x, w)
//   h_1 = matmul(x.batch1, w)
//   y = matmul(h, v)
//   y_1 = matmul(h_1, v)
// The graph is cut where it begins to read another unit, and every batch goes through a piece before any goes
// on. What follows from parameters and constants alone is there once. Outputs are those of the first batch,
// then those of the second. All of it is the same operations on the same shapes, so no bit changes. Runs on
// the order that `schedule` has found, before `gather_params`.
#pragma once
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "passes/pipeline.h"

namespace lockstep {

// The graph input that stands for `input` in the n-th batch.
std::string batch_input(std::string_view input, int64_t n);

Graph run_batches_together(const Graph& graph, const PassOptions& options);

}  // namespace lockstep
