// RopeTables: cosines and sines of every position, shared by all rope kernels that turn by the same angles.
//
// A model has two rope nodes per layer and direction with one set of angles; a table each would cost more
// memory and start-up time than the rest of the layer's plan. The tables are a pure function of the request;
// they are freed with the last kernel that uses them.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/kernel_def.h"

namespace lockstep::cpu {

struct RopeTables {
  std::vector<float> cos;  // [positions, pairs]
  std::vector<float> sin;
};

// Cosines and sines are rounded, then multiplied by the factor.
std::shared_ptr<const RopeTables> rope_tables(const CpuContext& context,
                                              const std::vector<float>& frequencies, float factor,
                                              int64_t positions);

}  // namespace lockstep::cpu
