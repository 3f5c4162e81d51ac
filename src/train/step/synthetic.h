// Seeded random inputs for a model: for benchmarks and tests, where the values do not matter but must be the
// same.
#pragma once
#include <cstdint>

#include "model/model.h"
#include "train/step/train_step.h"

namespace lockstep {

// Fills every data input of the model for one step. Integers are uniform below their bound, floats normal,
// labels of f32 type 0 or 1. A function of (seed, step, input, element).
void set_synthetic_inputs(TrainStep& train, const Model& model, uint64_t seed, int64_t step);

}  // namespace lockstep
