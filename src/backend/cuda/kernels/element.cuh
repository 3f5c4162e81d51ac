// Elements of tensors as kernels see them: storage types, conversion to and from float, 16-byte packs, and
// the one switch from a DType to a storage type.
//
// Arithmetic is always in float (double where a kernel says so); a value is rounded once, when it is stored.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

using bf16 = __nv_bfloat16;
using f16 = __half;

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float to_float(f16 x) { return __half2float(x); }

template <typename T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ bf16 from_float<bf16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ f16 from_float<f16>(float x) {
  return __float2half_rn(x);
}

// As many elements as one 16-byte access moves.
template <typename T>
inline constexpr int kPack = 16 / static_cast<int>(sizeof(T));

template <typename T, int N = kPack<T>>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
};

template <typename T>
__device__ __forceinline__ Pack<T> load_pack(const T* p) {
  return *reinterpret_cast<const Pack<T>*>(p);
}
template <typename T>
__device__ __forceinline__ void store_pack(T* p, const Pack<T>& pack) {
  *reinterpret_cast<Pack<T>*>(p) = pack;
}

// Parameters of norms are stored in float or like the tensor they scale: kPack<T> of them as floats.
template <typename T>
__device__ __forceinline__ void load_parameters(const void* p, bool is_float, int64_t first,
                                                float (&out)[kPack<T>]) {
  if (is_float) {
    const auto* source = static_cast<const float*>(p) + first;
#pragma unroll
    for (int i = 0; i < kPack<T>; i += 4) {
      const Pack<float> part = load_pack(source + i);
#pragma unroll
      for (int k = 0; k < 4; ++k) out[i + k] = part.v[k];
    }
  } else {
    const Pack<T> part = load_pack(static_cast<const T*>(p) + first);
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i) out[i] = to_float(part.v[i]);
  }
}
template <typename T>
__device__ __forceinline__ float load_parameter(const void* p, bool is_float, int64_t i) {
  return is_float ? static_cast<const float*>(p)[i] : to_float(static_cast<const T*>(p)[i]);
}
template <typename T>
__device__ __forceinline__ void store_parameter(void* p, bool is_float, int64_t i, float value) {
  if (is_float)
    static_cast<float*>(p)[i] = value;
  else
    static_cast<T*>(p)[i] = from_float<T>(value);
}

// Calls body with a value of the storage type: with_storage(dtype, [&](auto zero) { using T = decltype(zero);
// }).
template <typename Body>
void with_storage(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32: return body(float{});
    case DType::kBF16: return body(bf16{});
    case DType::kF16: return body(f16{});
    default: throw_unsupported(dtype);
  }
}

inline bool aligned16(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

}  // namespace lockstep::cuda
