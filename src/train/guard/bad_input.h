// Looks for values in a loaded microbatch that no model can take.
#pragma once
#include <optional>

#include "model/model.h"
#include "runtime/executable.h"
#include "train/guard/inspection.h"

namespace lockstep {

// Floating columns must be finite; integer ones must be indices below the model's bound, or the ignored
// label. `record` of the result is left empty.
std::optional<BadInput> find_bad_input(Executable& executable, Backend& backend, const Model& model);

}  // namespace lockstep
