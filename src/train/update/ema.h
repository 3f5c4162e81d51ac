// The exponential moving average of the weights: one fused loop over the flat buffer, after the update.
//
//   average = average + (1 - decay) (params - average)
//
// which is decay average + (1 - decay) params, written so that weights at rest are a fixed point: rounded to
// f32, decay and 1 - decay need not add to 1 (at decay 0.9999 the other form settles up to 3e-4 away from the
// weights). The average begins as a copy of the weights.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "passes/row_gradients.h"

namespace lockstep {

std::string average_name(std::string_view param);

// `params`: the type of the flat buffer, of which there may be nothing.
// Inputs: params @param, of the type that they are stored in, and average @state, which is f32 whatever that
// is, both [numel] of the flat buffers; for each table with row gradients its parameter and average_name of
// it, whose rows must be up to date. Updates the averages in place. 0 < decay < 1.
Graph build_ema_update(Type params, const std::vector<RowTable>& tables, double decay);

}  // namespace lockstep
