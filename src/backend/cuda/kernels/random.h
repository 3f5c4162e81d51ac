// dropout and round_stochastic: draws counted by (seed, key, position, element) as in ops/dropout_stream.h;
// and what parameters begin with.
#pragma once
#include "backend/cuda/kernels/launch.h"
#include "base/philox.h"

namespace lockstep::cuda {

// rng is i64[2] on the device: seed and position. The gradient is the same function of dy.
void dropout(cudaStream_t stream, DType dtype, const void* x, const int64_t* rng, int64_t key, double p,
             void* y, int64_t count);
// Element 0 takes draw `first`, a multiple of 4.
void round_stochastic(cudaStream_t stream, const float* x, const int64_t* rng, int64_t key, void* bf16_out,
                      int64_t count, int64_t first = 0);

// What elements [first, first + count) of a tensor begin with, to the bits of RandomFill::fill.
void fill_with_draws(cudaStream_t stream, const RandomFill& fill, DType dtype, int64_t first, void* out,
                     int64_t count);

}  // namespace lockstep::cuda
