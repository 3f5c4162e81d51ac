// Computes a microbatch once more in fp32, to tell what bf16 has made from what any precision would have
// made.
#pragma once
#include <optional>

#include "model/model.h"
#include "runtime/compile.h"

namespace lockstep {

// Whether loss and gradients of the microbatch that `backward` is bound to are finite when the same model is
// compiled for fp32 and reads the same buffers. Unset when there is no memory for it.
std::optional<bool> finite_in_fp32(const Model& model, Executable& backward, Backend& backend,
                                   PassOptions passes);

// Whether the loss and every gradient that the executable has just written are finite.
bool results_finite(Executable& executable, Backend& backend);

}  // namespace lockstep
