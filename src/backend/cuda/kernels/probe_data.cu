#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/probe_data.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 4096;

// A multiplicative hash with two rounds of mixing: enough that neighbours look unrelated.
__device__ __forceinline__ uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) noise_kernel(T* data, int64_t count, uint32_t seed) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * kThreads) {
    const uint32_t word = mix(static_cast<uint32_t>(i) ^ mix(seed ^ static_cast<uint32_t>(i >> 32)));
    data[i] = from_float<T>((static_cast<float>(word >> 8) + 0.5f) * 0x1p-23f - 1.0f);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    compare_kernel(const T* a, const T* b, int64_t count, int* differ) {
  bool found = false;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * kThreads)
    found = found || a[i] != b[i];
  if (found) *differ = 1;
}

}  // namespace

void fill_with_noise(cudaStream_t stream, DType dtype, void* data, int64_t count, uint32_t seed) {
  if (count == 0) return;
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    noise_kernel<<<blocks_for(count, kThreads, kMostBlocks), kThreads, 0, stream>>>(static_cast<T*>(data),
                                                                                    count, seed);
  });
  require_launched("fill_with_noise");
}

void compare_bits(cudaStream_t stream, const void* a, const void* b, int64_t bytes, int* differ) {
  if (bytes == 0) return;
  const bool words = bytes % 8 == 0 && aligned16(a) && aligned16(b);
  if (words)
    compare_kernel<<<blocks_for(bytes / 8, kThreads, kMostBlocks), kThreads, 0, stream>>>(
        static_cast<const uint64_t*>(a), static_cast<const uint64_t*>(b), bytes / 8, differ);
  else
    compare_kernel<<<blocks_for(bytes, kThreads, kMostBlocks), kThreads, 0, stream>>>(
        static_cast<const uint8_t*>(a), static_cast<const uint8_t*>(b), bytes, differ);
  require_launched("compare_bits");
}

}  // namespace lockstep::cuda
