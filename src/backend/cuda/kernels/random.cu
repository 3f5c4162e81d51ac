#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/random.cuh"
#include "backend/cuda/kernels/random.h"
#include "ops/dropout_stream.h"
#include "ops/stochastic_rounding.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ uint32_t word_of(const uint4& words, int i) {
  return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

// One block of four words per thread and turn.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    dropout_kernel(const T* x, const int64_t* rng, uint2 domain, int64_t key, uint64_t threshold, float scale,
                   T* y, int64_t count, bool packed) {
  const DevicePhilox random(domain, key, rng);
  const int64_t groups = (count + 3) / 4;
  for (int64_t g = int64_t{blockIdx.x} * kThreads + threadIdx.x; g < groups;
       g += int64_t{gridDim.x} * kThreads) {
    const uint4 words = random.block(static_cast<uint64_t>(g));
    if (packed && g * 4 + 4 <= count) {
      auto four = *reinterpret_cast<const Pack<T, 4>*>(x + g * 4);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        four.v[i] = from_float<T>(word_of(words, i) < threshold ? 0.0f : to_float(four.v[i]) * scale);
      *reinterpret_cast<Pack<T, 4>*>(y + g * 4) = four;
    } else {
      for (int i = 0; i < 4 && g * 4 + i < count; ++i)
        y[g * 4 + i] = from_float<T>(word_of(words, i) < threshold ? 0.0f : to_float(x[g * 4 + i]) * scale);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    rounding_kernel(const float* x, const int64_t* rng, uint2 domain, int64_t key, uint16_t* y, int64_t count,
                    int64_t first, bool packed) {
  const DevicePhilox random(domain, key, rng);
  const int64_t groups = (count + 3) / 4;
  for (int64_t g = int64_t{blockIdx.x} * kThreads + threadIdx.x; g < groups;
       g += int64_t{gridDim.x} * kThreads) {
    const uint4 words = random.block(static_cast<uint64_t>(first / 4 + g));
    if (packed && g * 4 + 4 <= count) {
      const Pack<float> four = load_pack(x + g * 4);
      Pack<uint16_t, 4> out;
#pragma unroll
      for (int i = 0; i < 4; ++i) out.v[i] = round_stochastically(four.v[i], word_of(words, i));
      *reinterpret_cast<Pack<uint16_t, 4>*>(y + g * 4) = out;
    } else {
      for (int i = 0; i < 4 && g * 4 + i < count; ++i)
        y[g * 4 + i] = round_stochastically(x[g * 4 + i], word_of(words, i));
    }
  }
}

unsigned grid_for(int64_t count) { return blocks_for(ceil_div(count, 4), kThreads, 1 << 16); }

}  // namespace

void dropout(cudaStream_t stream, DType dtype, const void* x, const int64_t* rng, int64_t key, double p,
             void* y, int64_t count) {
  if (count == 0) return;
  const uint64_t threshold = Philox::bernoulli_threshold(p);
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    dropout_kernel<<<grid_for(count), kThreads, 0, stream>>>(
        static_cast<const T*>(x), rng, uint2{kDropoutDomain.k0, kDropoutDomain.k1}, key, threshold,
        dropout_scale(p), static_cast<T*>(y), count, aligned16(x) && aligned16(y));
  });
  require_launched("dropout");
}

void round_stochastic(cudaStream_t stream, const float* x, const int64_t* rng, int64_t key, void* bf16_out,
                      int64_t count, int64_t first) {
  if (count == 0) return;
  rounding_kernel<<<grid_for(count), kThreads, 0, stream>>>(
      x, rng, uint2{kRoundingDomain.k0, kRoundingDomain.k1}, key, static_cast<uint16_t*>(bf16_out), count,
      first, aligned16(x) && aligned16(bf16_out));
  require_launched("round_stochastic");
}

}  // namespace lockstep::cuda
