// Data to time and compare candidates of a library with: noise to compute on, and whether two results have
// the same bits.
#pragma once
#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

// Values in (-1, 1) that depend on the seed and the element: zeros would run faster than real data does.
void fill_with_noise(cudaStream_t stream, DType dtype, void* data, int64_t count, uint32_t seed);
// *differ, on the device or pinned, becomes 1 where a byte differs; it is never set back.
void compare_bits(cudaStream_t stream, const void* a, const void* b, int64_t bytes, int* differ);

}  // namespace lockstep::cuda
