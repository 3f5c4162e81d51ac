// The floor under a training step: the time of its matrix products and convolutions alone, each run by
// itself.
#pragma once
#include "backend/backend.h"

namespace lockstep {

double gemm_floor_milliseconds(const Graph& graph, Backend& backend);

}  // namespace lockstep
