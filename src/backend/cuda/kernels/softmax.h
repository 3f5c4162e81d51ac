// softmax and log_softmax along one axis of [outer, n, inner], with their gradients.
#pragma once
#include "backend/cuda/kernels/column_sums.h"

namespace lockstep::cuda {

void softmax(cudaStream_t stream, const ReducedShape& shape, DType dtype, bool logarithm, const void* x,
             void* y);
// From the result y: y * (dy - sum(y dy)), or dy - e^y sum(dy) for the logarithm.
void softmax_grad(cudaStream_t stream, const ReducedShape& shape, DType dtype, bool logarithm, const void* y,
                  const void* dy, void* dx);

}  // namespace lockstep::cuda
