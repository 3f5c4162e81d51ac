#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/rope.h"

namespace lockstep::cuda {
namespace {

// N neighbours of a table; where these are whole packs, they begin at one.
template <int N>
__device__ __forceinline__ void load_angles(const float* table, float (&to)[N]) {
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const Pack<float> part = load_pack(table + i);
#pragma unroll
      for (int k = 0; k < 4; ++k) to[i + k] = part.v[k];
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = table[i];
  }
}

// Halves: N pairs per thread, two packs of x. A block takes some heads of one token.
template <typename T, int N>
__global__ void halves_kernel(RopeShape s, const T* x, const int32_t* positions, const float* cosine,
                              const float* sine, T* y) {
  const auto pairs = static_cast<unsigned>(s.rotary / 2), per_head = pairs / N;
  const auto items = static_cast<unsigned>(s.turned) * per_head;
  const int64_t token = blockIdx.x;
  const int64_t position = positions == nullptr ? token % s.sequence : positions[token];
  const float sign = s.inverse ? -1.0f : 1.0f;
  for (unsigned i = threadIdx.x; i < items; i += blockDim.x) {
    const unsigned head = i / per_head, pair = i % per_head * N;
    const int64_t first = (token * s.heads + head) * s.width + pair;
    auto a = *reinterpret_cast<const Pack<T, N>*>(x + first);
    auto b = *reinterpret_cast<const Pack<T, N>*>(x + first + pairs);
    float c[N], d[N];
    load_angles(cosine + position * pairs + pair, c);
    load_angles(sine + position * pairs + pair, d);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float u = to_float(a.v[k]), v = to_float(b.v[k]), turn = d[k] * sign;
      a.v[k] = from_float<T>(u * c[k] - v * turn);
      b.v[k] = from_float<T>(v * c[k] + u * turn);
    }
    *reinterpret_cast<Pack<T, N>*>(y + first) = a;
    *reinterpret_cast<Pack<T, N>*>(y + first + pairs) = b;
  }
}

template <typename T>
__global__ void interleaved_kernel(RopeShape s, const T* x, const int32_t* positions, const float* cosine,
                                   const float* sine, T* y) {
  const int64_t pairs = s.rotary / 2;
  const int64_t token = blockIdx.x;
  const int64_t position = positions == nullptr ? token % s.sequence : positions[token];
  const float sign = s.inverse ? -1.0f : 1.0f;
  for (int64_t i = threadIdx.x; i < s.turned * pairs; i += blockDim.x) {
    const int64_t first = (token * s.heads + i / pairs) * s.width + i % pairs * 2;
    const float c = cosine[position * pairs + i % pairs], d = sine[position * pairs + i % pairs] * sign;
    const float u = to_float(x[first]), v = to_float(x[first + 1]);
    y[first] = from_float<T>(u * c - v * d);
    y[first + 1] = from_float<T>(v * c + u * d);
  }
}

}  // namespace

void rope(cudaStream_t stream, const RopeShape& s, const void* x, const int32_t* positions,
          const float* cosine, const float* sine, void* y) {
  if (s.tokens == 0) return;
  const int64_t bytes = s.tokens * s.heads * s.width * size_of(s.dtype);
  if (x != y && (s.turned != s.heads || s.rotary != s.width))
    require(cudaMemcpyAsync(y, x, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream), "rope");
  const auto tokens = static_cast<unsigned>(s.tokens);
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    const bool packed =
        s.rotary / 2 % kPack<T> == 0 && s.width % kPack<T> == 0 && aligned16(x) && aligned16(y);
    if (s.interleaved)
      interleaved_kernel<<<tokens, 128, 0, stream>>>(s, from, positions, cosine, sine, to);
    else if (packed)
      halves_kernel<T, kPack<T>><<<tokens, 128, 0, stream>>>(s, from, positions, cosine, sine, to);
    else
      halves_kernel<T, 1><<<tokens, 128, 0, stream>>>(s, from, positions, cosine, sine, to);
  });
  require_launched("rope");
}

}  // namespace lockstep::cuda
