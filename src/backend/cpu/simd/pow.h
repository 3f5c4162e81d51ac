// x^y of a Vec for any y, with the special cases of C's pow; results below the normal numbers may be 0.
//
// e^(y log x) in plain floats would lose as many bits as y log x has before the point (seven at the top of
// the range); here the logarithm and the product are carried as an unevaluated sum high + low.
#pragma once
#include "backend/cpu/simd/math.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

struct HighLow {
  Vec high, low;
};

// log x = high + low to about 1e-9 relative, for positive finite x.
inline HighLow log_pair(Vec x) {
  constexpr float c[] = {6.666677594e-01f, 3.997757733e-01f, 2.987106740e-01f};  // 1.6e-9, times s^2 <= 0.03
  Vec f, e;
  split_for_log(x, f, e);
  // log(1+f) = 2s + s^3 P(s^2) with s = f / (2+f); only the first term needs the second float.
  const Vec denominator = f + 2.0f;
  const Vec denominator_low = f - (denominator - 2.0f);
  const Vec s = f / denominator;
  const Vec s_low = fma(-s, denominator_low, fma(-s, denominator, f)) / denominator;
  const Vec square = s * s;
  const Vec tail = fma(s * square, polynomial(square, c), fma(e, broadcast(kLn2Low), s_low * 2.0f));
  const Vec exponent_part = e * kLn2High;
  // |exponent_part| is 0 or exceeds |2s|, as two-sum in three operations requires.
  const Vec twice = s * 2.0f;
  const Vec sum = exponent_part + twice;
  const Vec error = twice - (sum - exponent_part);
  const Vec low = error + tail;
  const Vec high = sum + low;
  return {high, low - (high - sum)};
}

inline Vec pow(Vec x, Vec y) {
  const HighLow log_x = log_pair(abs(x));
  const Vec product = y * log_x.high;
  const Vec low = fma(y, log_x.low, fma(y, log_x.high, -product));
  // A product that overflows leaves an infinite or NaN low part; the clamp of exp has decided by then.
  Vec z = exp(product, abs(product) < 128.0f ? low : zero());

  const VecInt grows = (abs(x) > 1.0f) == (y > 0.0f);
  const Vec limit = grows ? broadcast(kInfinity) : zero();
  const VecInt at_limit = (x == 0.0f) | (abs(x) == kInfinity) | (abs(y) == kInfinity);
  z = at_limit ? limit : z;

  const Vec half = y * 0.5f;
  const VecInt integral = (round(y) == y) & (abs(y) < kInfinity);
  const VecInt odd = integral & (round(half) != half);
  z = odd ? copy_sign(z, x) : z;
  const VecInt undefined = (x < 0.0f) & (x > -kInfinity) & ~integral & (abs(y) < kInfinity);
  z = undefined ? broadcast(kNaN) : z;
  z = (x != x) | (y != y) ? x + y : z;
  return (y == 0.0f) | (x == 1.0f) | ((x == -1.0f) & (abs(y) == kInfinity)) ? broadcast(1.0f) : z;
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
