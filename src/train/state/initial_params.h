// The values that parameters begin with, drawn on all threads: each is a function of the seed, the
// parameter's name and its place, so that who draws it does not matter.
#pragma once
#include <vector>

#include "model/model.h"
#include "train/state/train_state.h"

namespace lockstep {

void draw_params(Backend& backend, const std::vector<StateTensor>& params,
                 const std::vector<ParamInit>& inits, uint64_t seed);

}  // namespace lockstep
