// SquareSum: sum of squares of floats in double, in an order that is the same on every instruction set:
// element i goes to running sum i % 32, and the 32 sums are added by halving.
//
// A square of a float is exact in double, and no sum of fewer than 2^100 of them overflows: the result is
// finite if and only if every element is, which makes the finite check of a gradient free.
#pragma once
#include "backend/cpu/simd/each_vec.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

typedef double VecDouble __attribute__((vector_size(sizeof(Vec)), may_alias));

#if defined(__AVX512F__)
inline VecDouble low_doubles(Vec v) { return (VecDouble)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v)); }
inline VecDouble high_doubles(Vec v) {
  return (VecDouble)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1));
}
inline VecDouble fma(VecDouble a, VecDouble b, VecDouble c) {
  return (VecDouble)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#else
inline VecDouble low_doubles(Vec v) { return (VecDouble)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v)); }
inline VecDouble high_doubles(Vec v) {
  return (VecDouble)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
}
inline VecDouble fma(VecDouble a, VecDouble b, VecDouble c) {
  return (VecDouble)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#endif

class SquareSum {
 public:
  static constexpr int kSums = 32;
  static constexpr int kVecs = kSums / kLanes;

  // v holds elements whose first index is slot * kLanes modulo 32; absent lanes are zero.
  void add(int slot, Vec v) {
    const VecDouble low = low_doubles(v), high = high_doubles(v);
    sums_[2 * slot] = fma(low, low, sums_[2 * slot]);
    sums_[2 * slot + 1] = fma(high, high, sums_[2 * slot + 1]);
  }
  double total() const {
    double lanes[kSums];
    for (int i = 0; i < kSums; ++i) lanes[i] = sums_[i / kWidth][i % kWidth];
    for (int half = kSums / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    return lanes[0];
  }

 private:
  static constexpr int kWidth = kLanes / 2;
  VecDouble sums_[2 * kVecs] = {};
};

// Sum of squares of value(first_element, lanes), a Vec, over [begin, end); absent lanes may hold anything.
template <class Value>
inline double square_sum(int64_t begin, int64_t end, Value value) {
  SquareSum sums;
  int64_t i = begin;
  for (; i + SquareSum::kSums <= end; i += SquareSum::kSums)
    for (int slot = 0; slot < SquareSum::kVecs; ++slot) sums.add(slot, value(i + slot * kLanes, AllLanes{}));
  for (int slot = 0; i < end; ++slot, i += kLanes) {
    const FirstLanes lanes{end - i < kLanes ? end - i : kLanes};
    sums.add(slot, keep(value(i, lanes), lanes));
  }
  return sums.total();
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
