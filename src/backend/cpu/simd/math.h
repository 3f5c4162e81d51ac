// Elementary functions of a Vec: exp, expm1, log, log1p on [0,1], tanh, erf, sigmoid, softplus, rsqrt.
//
// Range reduction in the manner of Cephes, then minimax polynomials fitted for this file; the residual of
// each fit stands beside its coefficients, and math_test.cc bounds the error of each function. A NaN goes in
// and comes out, infinities give the limit, subnormal results of exp may be 0, and every lane is computed
// without looking at the others. No approximate reciprocal is used: its bits differ between vendors, those of
// a division do not.
#pragma once
#include "backend/cpu/simd/vec.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

inline constexpr float kInfinity = __builtin_inff();
inline constexpr float kNaN = __builtin_nanf("");

inline Vec abs(Vec x) { return (Vec)((VecInt)x & 0x7fffffff); }
inline Vec copy_sign(Vec magnitude, Vec sign) {
  return (Vec)((VecInt)magnitude | ((VecInt)sign & broadcast_int(INT32_MIN)));
}
// Limits x to [low, high]; a NaN passes, since min and max return their second operand then.
inline Vec clamp(Vec x, float low, float high) { return max(broadcast(low), min(broadcast(high), x)); }
inline Vec rsqrt(Vec x) { return 1.0f / sqrt(x); }

template <int N>
inline Vec polynomial(Vec x, const float (&c)[N]) {
  Vec y = broadcast(c[N - 1]);
  for (int k = N - 2; k >= 0; --k) y = fma(y, x, broadcast(c[k]));
  return y;
}

// The same as even(x^2) + x odd(x^2): one multiplication more, half the latency. Gains 3 to 10 % in the
// functions that chain two polynomials.
template <int N>
inline Vec split_polynomial(Vec x, const float (&c)[N]) {
  static_assert(N % 2 == 0);
  const Vec square = x * x;
  Vec even = broadcast(c[N - 2]), odd = broadcast(c[N - 1]);
  for (int k = N - 4; k >= 0; k -= 2) {
    even = fma(even, square, broadcast(c[k]));
    odd = fma(odd, square, broadcast(c[k + 1]));
  }
  return fma(odd, x, even);
}

inline constexpr float kLog2E = 1.44269504f;
// ln 2 in two parts; n * kLn2High is exact for every exponent n.
inline constexpr float kLn2High = 0.693359375f;
inline constexpr float kLn2Low = -2.12194440e-4f;

inline Vec reduce_by_ln2(Vec x, Vec n) {
  return fma(n, broadcast(-kLn2Low), fma(n, broadcast(-kLn2High), x));
}

inline constexpr float kExpCoefficients[] = {1.0f,
                                             1.0f,
                                             4.999999404e-01f,
                                             1.666651517e-01f,
                                             4.166808724e-02f,
                                             8.369300514e-03f,
                                             1.383834751e-03f};  // 3.3e-9 relative on |r| <= ln2/2

// p * 2^n where e^x is that, and 0 or infinity for the x outside the bounds to which n was computed.
#if defined(__AVX512F__)
inline constexpr float kExpLowest = -104.0f, kExpHighest = 89.0f;
inline Vec exp_from_parts(Vec p, Vec n, Vec) { return (Vec)_mm512_scalef_ps((__m512)p, (__m512)n); }
#else
// Between these bounds the result is a normal number. Smaller ones become 0: multiplying into the subnormals
// would cost three times the rest of the function.
inline constexpr float kExpLowest = -87.33654f, kExpHighest = 88.72283f;
inline Vec exp_from_parts(Vec p, Vec n, Vec x) {
  const Vec y = (Vec)((VecInt)p + (to_int(n) << 23));
  const Vec below_infinity = x > kExpHighest ? broadcast(kInfinity) : y;
  return x < kExpLowest ? zero() : below_infinity;
}
#endif

inline Vec exp(Vec x) {
  const Vec bounded = clamp(x, kExpLowest, kExpHighest);
  const Vec n = round(bounded * kLog2E);
  const Vec r = reduce_by_ln2(bounded, n);
  return exp_from_parts(polynomial(r, kExpCoefficients), n, x);
}
// e^(x + low), where low is a correction far smaller than x.
inline Vec exp(Vec x, Vec low) {
  const Vec bounded = clamp(x, kExpLowest, kExpHighest);
  const Vec n = round(bounded * kLog2E);
  const Vec r = reduce_by_ln2(bounded, n) + low;
  return exp_from_parts(polynomial(r, kExpCoefficients), n, x);
}
inline float exp(float x) { return exp(broadcast(x))[0]; }

// e^x - 1 without cancellation near 0, for x in [-80, 80].
inline Vec expm1_bounded(Vec x) {
  constexpr float c[] = {4.999999702e-01f, 1.666654497e-01f, 4.166744649e-02f, 8.366446942e-03f,
                         1.386980992e-03f};  // 1.4e-8 relative to e^r - 1
  const Vec n = round(x * kLog2E);
  const Vec r = reduce_by_ln2(x, n);
  const Vec p = fma(r * r, polynomial(r, c), r);
  const Vec s = (Vec)((to_int(n) + 127) << 23);
  return fma(p, s, s - 1.0f);
}

// log(2^e * (1+f)) for f in [sqrt(1/2)-1, sqrt(2)-1].
inline Vec log_of_parts(Vec f, Vec e) {
  constexpr float c[] = {3.333333135e-01f, -2.500082254e-01f, 2.000124604e-01f, -1.662331969e-01f,
                         1.420145780e-01f, -1.316032857e-01f, 1.276308894e-01f, -7.635416836e-02f};  // 5.9e-9
  const Vec square = f * f;
  Vec y = f * square * split_polynomial(f, c);
  y = fma(e, broadcast(kLn2Low), y);
  y = fma(square, broadcast(-0.5f), y);
  return fma(e, broadcast(kLn2High), f + y);
}

// x = 2^e * (1+f) for a positive finite x, subnormals included.
inline void split_for_log(Vec x, Vec& f, Vec& e) {
  constexpr int32_t kSqrtHalf = 0x3f3504f3;
  const VecInt tiny = x < 1.17549435e-38f;
  const VecInt bits = (VecInt)(tiny ? x * 16777216.0f : x);
  const VecInt exponent = (bits - kSqrtHalf) >> 23;
  f = (Vec)(bits - (exponent << 23)) - 1.0f;
  e = to_float(exponent) - (tiny ? broadcast(24.0f) : zero());
}

inline Vec log(Vec x) {
  Vec f, e;
  split_for_log(x, f, e);
  const Vec y = x < kInfinity ? log_of_parts(f, e) : x;
  return x > 0.0f ? y : (x == 0.0f ? broadcast(-kInfinity) : broadcast(kNaN));
}
inline float log(float x) { return log(broadcast(x))[0]; }

// log(1+z) for z in [0, 1]: 1+z is never rounded, so that small z keep their digits.
inline Vec log1p_unit(Vec z) {
  const VecInt small = z < 0.41421356f;
  const Vec f = small ? z : fma(z, broadcast(0.5f), broadcast(-0.5f));
  return log_of_parts(f, small ? zero() : broadcast(1.0f));
}

inline Vec tanh(Vec x) {
  // tanh|x| = (e^2|x| - 1) / (e^2|x| + 1), and 1 to the last bit from |x| = 9.02 on.
  const Vec doubled = min(broadcast(20.0f), abs(x) * 2.0f);
  const Vec e = expm1_bounded(doubled);
  return copy_sign(e / (e + 2.0f), x);
}

// log(erfc(z)) for z in [0, 10]: accurate as long as erfc(z) counts beside 1, then merely far below zero.
inline Vec log_erfc(Vec z) {
  constexpr float c[] = {-1.128379226e+00f, -6.366152763e-01f, -1.028264463e-01f,
                         1.936429366e-02f,  -2.736882598e-04f, -1.198666636e-03f,
                         3.613014997e-04f,  -3.794320946e-05f};  // 5.2e-8 in erf, relative
  return z * split_polynomial(z, c);
}

// 1 - erfc|x| as -expm1: no cancellation near 0, and 1 to the last bit from 4 on.
inline Vec erf(Vec x) {
  const Vec z = min(broadcast(5.0f), abs(x));
  return copy_sign(0.0f - expm1_bounded(log_erfc(z)), x);
}

inline Vec sigmoid(Vec x) { return 1.0f / (1.0f + exp(-x)); }

// log(1 + e^-|x|): what softplus and the binary cross-entropy add to max(x, 0), without overflow.
inline Vec log1p_exp_minus_abs(Vec x) { return log1p_unit(exp(-abs(x))); }
inline Vec softplus(Vec x) { return max(zero(), x) + log1p_exp_minus_abs(x); }

}  // namespace lockstep::cpu::LOCKSTEP_ISA
