// Narrow storage to and from a Vec: f16, i32, u8. (bf16 is in vec.h.)
#pragma once
#include "backend/cpu/simd/lanes.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

inline Vec load_bf16(const uint16_t* p, AllLanes) { return load_bf16(p); }
inline Vec load_bf16(const uint16_t* p, FirstLanes lanes) { return load_bf16(p, lanes.count); }
inline void store_bf16(uint16_t* p, Vec v, AllLanes) { store_bf16(p, v); }
inline void store_bf16(uint16_t* p, Vec v, FirstLanes lanes) { store_bf16(p, v, lanes.count); }

// The hardware keeps a NaN's sign and upper payload when it narrows; storage knows one NaN only.
inline Vec canonical_nan(Vec v) { return v == v ? v : broadcast(__builtin_nanf("")); }

// Casts to integers truncate, as in C; what no int32 can hold becomes INT32_MIN.
#if defined(__AVX512F__)

inline Vec load_f16(const uint16_t* p, AllLanes) {
  return (Vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
}
inline Vec load_f16(const uint16_t* p, FirstLanes lanes) {
  return (Vec)_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(lanes.count), p));
}
inline __m256i to_f16(Vec v) { return _mm512_cvtps_ph((__m512)canonical_nan(v), _MM_FROUND_TO_NEAREST_INT); }
inline void store_f16(uint16_t* p, Vec v, AllLanes) { _mm256_storeu_si256((__m256i*)p, to_f16(v)); }
inline void store_f16(uint16_t* p, Vec v, FirstLanes lanes) {
  _mm256_mask_storeu_epi16(p, first_lanes(lanes.count), to_f16(v));
}

inline Vec load_u8(const uint8_t* p, AllLanes) {
  return to_float((VecInt)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p)));
}
inline Vec load_u8(const uint8_t* p, FirstLanes lanes) {
  return to_float((VecInt)_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first_lanes(lanes.count), p)));
}
inline VecInt truncate(Vec v) { return (VecInt)_mm512_cvttps_epi32((__m512)v); }
// Values must lie in [0, 255].
inline void store_u8(uint8_t* p, VecInt v, AllLanes) {
  _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8((__m512i)v));
}
inline void store_u8(uint8_t* p, VecInt v, FirstLanes lanes) {
  _mm_mask_storeu_epi8(p, first_lanes(lanes.count), _mm512_cvtepi32_epi8((__m512i)v));
}

#else  // AVX2

inline Vec load_f16(const uint16_t* p, AllLanes) {
  return (Vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
}
inline Vec load_f16(const uint16_t* p, FirstLanes lanes) {
  uint16_t whole[kLanes] = {};
  for (int i = 0; i < lanes.count; ++i) whole[i] = p[i];
  return load_f16(whole, AllLanes{});
}
inline void store_f16(uint16_t* p, Vec v, AllLanes) {
  _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph((__m256)canonical_nan(v), _MM_FROUND_TO_NEAREST_INT));
}
inline void store_f16(uint16_t* p, Vec v, FirstLanes lanes) {
  uint16_t whole[kLanes];
  store_f16(whole, v, AllLanes{});
  for (int i = 0; i < lanes.count; ++i) p[i] = whole[i];
}

inline Vec load_u8(const uint8_t* p, AllLanes) {
  return to_float((VecInt)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p)));
}
inline Vec load_u8(const uint8_t* p, FirstLanes lanes) {
  uint8_t whole[kLanes] = {};
  for (int i = 0; i < lanes.count; ++i) whole[i] = p[i];
  return load_u8(whole, AllLanes{});
}
inline VecInt truncate(Vec v) { return (VecInt)_mm256_cvttps_epi32((__m256)v); }
inline void store_u8(uint8_t* p, VecInt v, FirstLanes lanes) {
  for (int i = 0; i < lanes.count; ++i) p[i] = static_cast<uint8_t>(v[i]);
}
inline void store_u8(uint8_t* p, VecInt v, AllLanes) {
  const __m128i words =
      _mm_packus_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
  _mm_storel_epi64((__m128i*)p, _mm_packus_epi16(words, words));
}

#endif

inline Vec load_i32(const int32_t* p, AllLanes) { return to_float((VecInt)load((const float*)p)); }
inline Vec load_i32(const int32_t* p, FirstLanes lanes) {
  return to_float((VecInt)load((const float*)p, lanes.count));
}
template <class Lanes>
inline void store_i32(int32_t* p, VecInt v, Lanes lanes) {
  store((float*)p, (Vec)v, lanes);
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
