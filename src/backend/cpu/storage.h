// Moves between the floating types of storage and the floats that kernels compute with.
#pragma once
#include <cstring>

#include "backend/cpu/simd/simd.h"
#include "base/dtype.h"

namespace lockstep::cpu {

// Elements [begin, begin + count) of a floating tensor as floats: in place for f32, otherwise converted into
// `buffer`.
inline const float* read_floats(const Simd& simd, DType dtype, const void* data, int64_t begin, int64_t count,
                                float* buffer) {
  if (dtype == DType::kF32) return static_cast<const float*>(data) + begin;
  const uint16_t* from = static_cast<const uint16_t*>(data) + begin;
  (dtype == DType::kBF16 ? simd.pointwise.from_bf16 : simd.pointwise.from_f16)(buffer, from, count);
  return buffer;
}

// Where to compute elements from `begin` on that write_floats then stores: in place for f32, otherwise
// `buffer`.
inline float* floats_to_write(DType dtype, void* data, int64_t begin, float* buffer) {
  return dtype == DType::kF32 ? static_cast<float*>(data) + begin : buffer;
}

inline void write_floats(const Simd& simd, DType dtype, void* data, int64_t begin, int64_t count,
                         const float* values) {
  if (dtype == DType::kF32) {
    float* to = static_cast<float*>(data) + begin;
    if (to != values) std::memcpy(to, values, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  uint16_t* to = static_cast<uint16_t*>(data) + begin;
  (dtype == DType::kBF16 ? simd.pointwise.to_bf16 : simd.pointwise.to_f16)(to, values, count);
}

}  // namespace lockstep::cpu
