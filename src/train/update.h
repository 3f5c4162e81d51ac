// The update graph: norm, clipping and the optimizer over flat buffers. Runs once per step, after all microbatches.
#pragma once
#include "graph/graph.h"
#include "model/model.h"
#include "runtime/flat.h"

namespace lockstep {

struct OptimizerSettings {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double clip_norm = 1.0;  // 0: no clipping
};

// Inputs: params @param, grads @grad, moment1 and moment2 @state (all f32[N]), count i64[], lr f32[], step i64[].
// The gradients are sums; they are divided by count here, once. Output 0 is the norm of the divided gradient.
Graph build_adamw_update(const FlatLayout& layout, const std::vector<ParamInit>& params, const OptimizerSettings& settings);

}  // namespace lockstep
