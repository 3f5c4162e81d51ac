// Sums over a warp and over a block, each by one fixed tree.
#pragma once
#include <cuda_runtime.h>

namespace lockstep::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;

struct Add {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// Every lane gets the result. Addition commutes, so that all lanes compute the same bits.
template <typename Op = Add, typename T>
__device__ __forceinline__ T warp_all(T x, Op op = {}) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) x = op(x, __shfl_xor_sync(kAllLanes, x, distance));
  return x;
}

// Over the kWarps warps of a team; `scratch` holds kWarps values for this team. Every thread of the block
// must call it, and every thread of the team gets the result.
template <int kWarps, typename Op = Add, typename T>
__device__ __forceinline__ T team_all(T x, T* scratch, int warp_in_team, Op op = {}) {
  x = warp_all(x, op);
  if constexpr (kWarps > 1) {
    __syncthreads();  // the last use of scratch is over
    if (threadIdx.x % 32 == 0) scratch[warp_in_team] = x;
    __syncthreads();
    x = scratch[0];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) x = op(x, scratch[w]);
  }
  return x;
}

// Two sums for the price of one exchange, and of one barrier: the call after this one must bring another
// scratch.
template <int kWarps>
__device__ __forceinline__ float2 team_sums(float2 x, float2* scratch, int warp_in_team) {
  x = {warp_all(x.x), warp_all(x.y)};
  if constexpr (kWarps > 1) {
    if (threadIdx.x % 32 == 0) scratch[warp_in_team] = x;
    __syncthreads();
    x = scratch[0];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) x = {x.x + scratch[w].x, x.y + scratch[w].y};
  }
  return x;
}

// Over a block of kThreads threads in one dimension.
template <int kThreads, typename Op = Add, typename T>
__device__ __forceinline__ T block_all(T x, Op op = {}) {
  __shared__ T scratch[kThreads / 32];
  return team_all<kThreads / 32>(x, scratch, threadIdx.x / 32, op);
}

}  // namespace lockstep::cuda
