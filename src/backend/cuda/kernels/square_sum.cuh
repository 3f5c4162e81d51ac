// warp_square_sum: squares of a block of elements summed in double by one warp. A square of a float is exact
// in double, so the result is finite if and only if every element is. Of floats, element i goes to lane i %
// 32, and the 32 sums are added by halving, which is the order of backend/cpu/simd/square_sum.h. Of bf16, a
// lane takes eight neighbours, which one access brings, so that the rate is that of memory.
#pragma once
#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/sums.cuh"

namespace lockstep::cuda {

inline constexpr int64_t kNormBlock = 1024;

// Lane 0 has the result.
__device__ __forceinline__ double sum_of_lanes(double sum) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(kAllLanes, sum, distance);
  return sum;
}

// Of x[begin, end), at most kNormBlock elements.
__device__ __forceinline__ double warp_square_sum(const float* x, int64_t begin, int64_t end, bool) {
  double sum = 0;
#pragma unroll 8
  for (int64_t i = begin + threadIdx.x % 32; i < end; i += 32) {
    const auto value = static_cast<double>(x[i]);
    sum = fma(value, value, sum);
  }
  return sum_of_lanes(sum);
}

// packed: x + begin is a multiple of 16 bytes.
__device__ __forceinline__ double warp_square_sum(const bf16* x, int64_t begin, int64_t end, bool packed) {
  constexpr int kWidth = kPack<bf16>;
  double sum = 0;
#pragma unroll
  for (int turn = 0; turn < kNormBlock / (32 * kWidth); ++turn) {
    const int64_t i = begin + (turn * 32 + threadIdx.x % 32) * kWidth;
    Pack<bf16> pack{};
    if (packed && i + kWidth <= end) {
      pack = load_pack(x + i);
    } else {
#pragma unroll
      for (int k = 0; k < kWidth; ++k)
        if (i + k < end) pack.v[k] = x[i + k];
    }
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const auto value = static_cast<double>(to_float(pack.v[k]));
      sum = fma(value, value, sum);
    }
  }
  return sum_of_lanes(sum);
}

}  // namespace lockstep::cuda
