// Loops over a row in vectors, and reductions of a row in an order fixed by its length alone.
//
// A body is written once, generic over how many lanes it covers: AllLanes in the bulk, FirstLanes in the
// tail. The tail so does the same arithmetic as the bulk.
#pragma once
#include "backend/cpu/simd/vec.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

struct AllLanes {};
struct FirstLanes {
  int64_t count;
};

inline Vec load(const float* p, AllLanes) { return load(p); }
inline Vec load(const float* p, FirstLanes lanes) { return load(p, lanes.count); }
inline void store(float* p, Vec v, AllLanes) { store(p, v); }
inline void store(float* p, Vec v, FirstLanes lanes) { store(p, v, lanes.count); }

// Lanes beyond the tail take `other`: the value that a reduction ignores.
inline Vec load_or(const float* p, AllLanes, Vec) { return load(p); }
inline Vec load_or(const float* p, FirstLanes lanes, Vec other) {
#if defined(__AVX512F__)
  return (Vec)_mm512_mask_loadu_ps((__m512)other, first_lanes(lanes.count), p);
#else
  return select((VecInt)first_lanes(lanes.count), load(p, lanes.count), other);
#endif
}

// sum() and max_lane() of vec.h, the same tree and the same bits, in registers: worth about 10 ns a sum.
template <class Combine>
inline float fold_halves(Vec v, Combine combine) {
#if defined(__AVX512F__)
  const __m256 upper = _mm512_extractf32x8_ps((__m512)v, 1);
  const __m256 eight = combine(_mm512_castps512_ps256((__m512)v), upper);
#else
  const __m256 eight = (__m256)v;
#endif
  const __m128 four = combine(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = combine(four, _mm_movehl_ps(four, four));
  return combine(two, _mm_movehdup_ps(two))[0];
}
struct Add {
  template <class V>
  V operator()(V a, V b) const {
    return a + b;
  }
};
struct Max {
  template <class V>
  V operator()(V a, V b) const {
    return a > b ? a : b;
  }
};

template <class Body>
inline void for_lanes(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, AllLanes{});
  if (i < n) body(i, FirstLanes{n - i});
}

// Folds term(i, lanes) over a row. Four accumulators hide the latency of the addition; element i always goes
// to the same one, and they meet in the same order.
template <class Term, class Combine>
inline Vec fold_lanes(int64_t n, Vec start, Term term, Combine combine) {
  Vec a0 = start, a1 = start, a2 = start, a3 = start;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a0 = combine(a0, term(i, AllLanes{}));
    a1 = combine(a1, term(i + kLanes, AllLanes{}));
    a2 = combine(a2, term(i + 2 * kLanes, AllLanes{}));
    a3 = combine(a3, term(i + 3 * kLanes, AllLanes{}));
  }
  for (; i + kLanes <= n; i += kLanes) a0 = combine(a0, term(i, AllLanes{}));
  if (i < n) a1 = combine(a1, term(i, FirstLanes{n - i}));
  return combine(combine(a0, a2), combine(a1, a3));
}

// The term of a tail must be 0 beyond its lanes.
template <class Term>
inline float sum_lanes(int64_t n, Term term) {
  return fold_halves(fold_lanes(n, zero(), term, Add{}), Add{});
}

// Two sums in one sweep; term returns a pair {first, second}.
struct VecPair {
  Vec first, second;
};
struct FloatPair {
  float first, second;
};
template <class Term>
inline FloatPair sum_lanes_pair(int64_t n, Term term) {
  VecPair a{zero(), zero()}, b{zero(), zero()};
  const auto add = [](VecPair& sum, VecPair t) {
    sum.first += t.first;
    sum.second += t.second;
  };
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    add(a, term(i, AllLanes{}));
    add(b, term(i + kLanes, AllLanes{}));
  }
  if (i + kLanes <= n) {
    add(a, term(i, AllLanes{}));
    i += kLanes;
  }
  if (i < n) add(b, term(i, FirstLanes{n - i}));
  return {fold_halves(a.first + b.first, Add{}), fold_halves(a.second + b.second, Add{})};
}

// Largest element that is not a NaN, -infinity when there is none.
inline float max_of(const float* x, int64_t n) {
  const Vec lowest = broadcast(-__builtin_inff());
  const auto term = [=](int64_t i, auto lanes) { return load_or(x + i, lanes, lowest); };
  return fold_halves(fold_lanes(n, lowest, term, [](Vec a, Vec b) { return max(b, a); }), Max{});
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
