// exp2 for softmax: a narrower domain than exp() of math.h, and about two thirds of its cost.
//
// Softmax only needs exponentials of arguments at or below zero, up to rounding. In base 2 the argument needs
// no reduction in two parts: the factor log2(e) is folded into the scale that multiplies the queries anyway.
#pragma once
#include "backend/cpu/simd/math.h"
#include "backend/cpu/simd/vec.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

// 2^x for x < 127, to about 1 unit in the last place. Results below the smallest normal number are 0, as is
// 2^-inf, so that no subnormal slows the products that follow; NaN stays NaN.
inline Vec exp2_below(Vec x) {
  // 1 + f * (2^f - 1)/f, the quotient interpolated at Chebyshev nodes of [-0.5, 0.5]: 9.2e-9 relative, and
  // exactly 1 at f = 0, so that a query with a single visible key gives it probability 1.
  constexpr float c[] = {1.0f,           6.93147182e-1f, 2.40226507e-1f, 5.55035695e-2f,
                         9.61808302e-3f, 1.33908633e-3f, 1.54531634e-4f};
  const Vec lowest = broadcast(-126.0f);
  // The operand order matters: max() returns its second operand for NaN.
  const Vec clamped = max(lowest, x);
  const Vec whole = round(clamped);
  const Vec p = polynomial(clamped - whole, c);
#if defined(__AVX512F__)
  const __mmask16 keep = _mm512_cmp_ps_mask((__m512)x, (__m512)lowest, _CMP_NLT_UQ);
  return (Vec)_mm512_maskz_scalef_ps(keep, (__m512)p, (__m512)whole);
#else
  const VecInt scaled = (VecInt)p + (to_int(whole) << 23);
  return (Vec)(scaled & ~(VecInt)(x < lowest));
#endif
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
