// Vec: one hardware vector of floats, as wide as the instruction set this file is compiled for.
//
// Every *_loops.cc of this folder is compiled once per instruction set with LOCKSTEP_ISA naming it (avx2,
// avx512); Vec and everything built on it lives in that namespace. Tails are loaded and stored through a lane
// count, so that a tail does the very same arithmetic as the body. Multiply-add is fused only where the code
// says fma().
#pragma once
// GCC 12 warns about its own AVX-512 header, whose don't-care operands are variables initialised with
// themselves.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstddef>
#include <cstdint>

#ifndef LOCKSTEP_ISA
#error "vec.h is for *_loops.cc files, which are compiled once per instruction set"
#endif

namespace lockstep::cpu::LOCKSTEP_ISA {

#if defined(__AVX512F__)

inline constexpr int kLanes = 16;
typedef float Vec __attribute__((vector_size(64), may_alias));
typedef int32_t VecInt __attribute__((vector_size(64), may_alias));
using Mask = __mmask16;

inline Mask first_lanes(int64_t n) { return static_cast<Mask>(n >= 16 ? 0xffffu : (1u << n) - 1u); }
inline Vec load(const float* p) { return (Vec)_mm512_loadu_ps(p); }
inline Vec load(const float* p, int64_t n) { return (Vec)_mm512_maskz_loadu_ps(first_lanes(n), p); }
inline void store(float* p, Vec v) { _mm512_storeu_ps(p, (__m512)v); }
inline void store(float* p, Vec v, int64_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), (__m512)v); }
inline Vec broadcast(float x) { return (Vec)_mm512_set1_ps(x); }
inline Vec fma(Vec a, Vec b, Vec c) { return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
inline Vec sqrt(Vec a) { return (Vec)_mm512_sqrt_ps((__m512)a); }
// max and min return the second operand when either is NaN (the hardware rule), on every instruction set.
inline Vec max(Vec a, Vec b) { return (Vec)_mm512_max_ps((__m512)a, (__m512)b); }
inline Vec min(Vec a, Vec b) { return (Vec)_mm512_min_ps((__m512)a, (__m512)b); }
inline Vec round(Vec a) {
  return (Vec)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline VecInt to_int(Vec a) { return (VecInt)_mm512_cvtps_epi32((__m512)a); }
inline Vec to_float(VecInt a) { return (Vec)_mm512_cvtepi32_ps((__m512i)a); }
// Lane-wise condition ? a : b, where the condition is an integer vector of all-ones or all-zeros lanes.
inline Vec select(VecInt condition, Vec a, Vec b) {
  return (Vec)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)condition), (__m512)b, (__m512)a);
}
inline Vec gather(const float* base, VecInt index) {
  return (Vec)_mm512_i32gather_ps((__m512i)index, base, 4);
}

// bf16 storage: the upper half of a float, rounded to nearest even; NaN stays a NaN.
inline Vec load_bf16(const uint16_t* p) {
  return (Vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16);
}
inline Vec load_bf16(const uint16_t* p, int64_t n) {
  return (Vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first_lanes(n), p)), 16);
}
inline __m256i to_bf16(Vec v) {
  const __m512i bits = (__m512i)v;
  const __m512i lsb = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(lsb, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q);
  rounded = _mm512_mask_set1_epi32(rounded, nan, 0x7fc00000);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}
inline void store_bf16(uint16_t* p, Vec v) { _mm256_storeu_si256((__m256i*)p, to_bf16(v)); }
inline void store_bf16(uint16_t* p, Vec v, int64_t n) {
  _mm256_mask_storeu_epi16(p, first_lanes(n), to_bf16(v));
}

#else  // AVX2

inline constexpr int kLanes = 8;
typedef float Vec __attribute__((vector_size(32), may_alias));
typedef int32_t VecInt __attribute__((vector_size(32), may_alias));

inline __m256i first_lanes(int64_t n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n < 8 ? n : 8)), lane);
}
inline Vec load(const float* p) { return (Vec)_mm256_loadu_ps(p); }
inline Vec load(const float* p, int64_t n) { return (Vec)_mm256_maskload_ps(p, first_lanes(n)); }
inline void store(float* p, Vec v) { _mm256_storeu_ps(p, (__m256)v); }
inline void store(float* p, Vec v, int64_t n) { _mm256_maskstore_ps(p, first_lanes(n), (__m256)v); }
inline Vec broadcast(float x) { return (Vec)_mm256_set1_ps(x); }
inline Vec fma(Vec a, Vec b, Vec c) { return (Vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
inline Vec sqrt(Vec a) { return (Vec)_mm256_sqrt_ps((__m256)a); }
inline Vec max(Vec a, Vec b) { return (Vec)_mm256_max_ps((__m256)a, (__m256)b); }
inline Vec min(Vec a, Vec b) { return (Vec)_mm256_min_ps((__m256)a, (__m256)b); }
inline Vec round(Vec a) {
  return (Vec)_mm256_round_ps((__m256)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline VecInt to_int(Vec a) { return (VecInt)_mm256_cvtps_epi32((__m256)a); }
inline Vec to_float(VecInt a) { return (Vec)_mm256_cvtepi32_ps((__m256i)a); }
inline Vec select(VecInt condition, Vec a, Vec b) {
  return (Vec)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)condition);
}
inline Vec gather(const float* base, VecInt index) {
  return (Vec)_mm256_i32gather_ps(base, (__m256i)index, 4);
}

inline Vec load_bf16(const uint16_t* p) {
  return (Vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16);
}
inline Vec load_bf16(const uint16_t* p, int64_t n) {
  uint16_t lanes[8] = {};
  for (int i = 0; i < 8 && i < n; ++i) lanes[i] = p[i];
  return load_bf16(lanes);
}
inline __m128i to_bf16(Vec v) {
  const __m256i bits = (__m256i)v;
  const __m256i lsb = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(lsb, _mm256_set1_epi32(0x7fff)));
  const __m256 nan = _mm256_cmp_ps((__m256)v, (__m256)v, _CMP_UNORD_Q);
  rounded = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc00000), (__m256i)nan);
  rounded = _mm256_srli_epi32(rounded, 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
}
inline void store_bf16(uint16_t* p, Vec v) { _mm_storeu_si128((__m128i*)p, to_bf16(v)); }
inline void store_bf16(uint16_t* p, Vec v, int64_t n) {
  uint16_t lanes[8];
  store_bf16(lanes, v);
  for (int i = 0; i < 8 && i < n; ++i) p[i] = lanes[i];
}

#endif

inline Vec zero() { return broadcast(0.0f); }
inline VecInt broadcast_int(int32_t x) { return VecInt{} + x; }

// Sum of the lanes by halving: ((0+8)+(4+12)) ... the same tree for every caller. The order differs between
// instruction sets, which is why the instruction-set class is part of a run's identity.
inline float sum(Vec v) {
  float lanes[kLanes];
  store(lanes, v);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}
inline float max_lane(Vec v) {
  float lanes[kLanes];
  store(lanes, v);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] = lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half];
  return lanes[0];
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
