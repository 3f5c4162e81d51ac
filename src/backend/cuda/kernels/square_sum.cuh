// warp_square_sum: squares of floats summed in double by one warp: element i goes to lane i % 32, and the 32
// sums are added by halving, which is the order of backend/cpu/simd/square_sum.h. A square of a float is
// exact in double, so the result is finite if and only if every element is.
#pragma once
#include "backend/cuda/kernels/sums.cuh"

namespace lockstep::cuda {

inline constexpr int64_t kNormBlock = 1024;

// value(i) for i in [begin, end); lane 0 has the result.
template <typename Value>
__device__ __forceinline__ double warp_square_sum(int64_t begin, int64_t end, const Value& value) {
  double sum = 0;
#pragma unroll 8
  for (int64_t i = begin + threadIdx.x % 32; i < end; i += 32) {
    const auto x = static_cast<double>(value(i));
    sum = fma(x, x, sum);
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(kAllLanes, sum, distance);
  return sum;
}

}  // namespace lockstep::cuda
