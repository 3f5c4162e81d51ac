// The same model with its trained parameters stored in another type: what a precision plan without an f32
// copy of the weights trains.
//
//   graph f(x: f32[4,2], w: f32[2,3] @param) { y = matmul(x, w) ... }
// stored in bf16 becomes
//   graph f(x: f32[4,2], w: bf16[2,3] @param) { w32 = cast(w) {dtype=f32}  y = matmul(x, w32) ... }
// The pass that computes in bf16 takes w as it is. Gradients have the parameters' type, and so has everything
// that is laid out like them (runtime/flat.h).
#pragma once
#include "model/model.h"

namespace lockstep {

Model stored_in(DType dtype, const Model& model);

}  // namespace lockstep
