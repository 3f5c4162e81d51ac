#include <cmath>

#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/random.cuh"
#include "backend/cuda/kernels/random.h"
#include "base/draw_arithmetic.h"
#include "ops/dropout_stream.h"
#include "ops/stochastic_rounding.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;

// RandomFill as a kernel takes it.
struct Drawn {
  RandomFill::Kind kind;
  float a, b, last;
  uint2 seed, stream;
  int64_t zeros_begin, zeros_end;
};

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

// The four draws of a block, as Philox::fill_normal and fill_uniform make them.
__device__ __forceinline__ float4 draws_of(const Drawn& drawn, const uint4& words) {
  if (drawn.kind == RandomFill::Kind::kNormal) {
    const draws::NormalPair low = draws::normal_pair(words.x, words.y);
    const draws::NormalPair high = draws::normal_pair(words.z, words.w);
    return {drawn.a + drawn.b * low.even, drawn.a + drawn.b * low.odd, drawn.a + drawn.b * high.even,
            drawn.a + drawn.b * high.odd};
  }
  const auto between = [&](uint32_t word) {
    const float value = drawn.a + (drawn.b - drawn.a) * draws::uniform_of(word);
    return value < drawn.b ? value : drawn.last;
  };
  return {between(words.x), between(words.y), between(words.z), between(words.w)};
}

// Elements [first, first + count) of the tensor, the blocks of four that they lie in dealt out to threads.
template <typename T>
__global__ void __launch_bounds__(kThreads) fill_kernel(Drawn drawn, int64_t first, T* out, int64_t count) {
  const int64_t from = first / 4, blocks = (first + count + 3) / 4 - from;
  for (int64_t g = int64_t{blockIdx.x} * kThreads + threadIdx.x; g < blocks;
       g += int64_t{gridDim.x} * kThreads) {
    const auto block = static_cast<uint64_t>(from + g);
    float4 values{drawn.a, drawn.a, drawn.a, drawn.a};
    if (drawn.kind != RandomFill::Kind::kConstant)
      values = draws_of(drawn, philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                                           drawn.stream.x, drawn.stream.y},
                                          drawn.seed));
    const float four[4] = {values.x, values.y, values.z, values.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int64_t i = (from + g) * 4 + k;
      if (i < first || i >= first + count) continue;
      const bool zero = i >= drawn.zeros_begin && i < drawn.zeros_end;
      out[i - first] = from_float<T>(zero ? 0.0f : four[k]);
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

void fill_with_draws(cudaStream_t stream, const RandomFill& fill, DType dtype, int64_t first, void* out,
                     int64_t count) {
  if (count == 0) return;
  const auto words = [](uint64_t x) {
    return uint2{static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)};
  };
  const Drawn drawn{
      fill.kind,          fill.a,           fill.b,        std::nextafter(fill.b, fill.a), words(fill.seed),
      words(fill.stream), fill.zeros_begin, fill.zeros_end};
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    fill_kernel<<<grid_for(count + 8), kThreads, 0, stream>>>(drawn, first, static_cast<T*>(out), count);
  });
  require_launched("fill_with_draws");
}

}  // namespace lockstep::cuda
