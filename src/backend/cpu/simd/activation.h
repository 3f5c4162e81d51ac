// Activations of a Vec and their derivatives at x: gelu (exact and tanh form), silu, relu.
//
// At -infinity gelu and silu give their limit 0, not the NaN of a literal -inf * 0. The derivatives bound x
// where they are within 1e-35 of their limits, so that infinities need no branch and e^-x stays finite.
#pragma once
#include "backend/cpu/simd/math.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

inline Vec relu(Vec x) { return max(zero(), x); }

// x * sigmoid(x) as one division; from -104 down the exponential is infinite and the quotient 0.
inline Vec silu(Vec x) {
  x = max(broadcast(-104.0f), x);
  return x / (1.0f + exp(-x));
}
inline Vec silu_grad(Vec x) {
  x = clamp(x, -88.0f, 88.0f);
  const Vec e = exp(-x);
  const Vec s = 1.0f / (1.0f + e);
  return s * fma(x, e * s, broadcast(1.0f));  // e * s is 1 - s without its cancellation
}

inline constexpr float kInvSqrt2 = 0.707106781f;
inline constexpr float kInvSqrt2Pi = 0.398942280f;

// The normal distribution function as erfc(|x|/sqrt2)/2 or its complement, so that the negative side keeps
// its digits.
inline Vec normal_cdf(Vec x) {
  const Vec z = min(broadcast(10.0f), abs(x) * kInvSqrt2);
  const Vec tail = exp(log_erfc(z)) * 0.5f;
  return x < 0.0f ? tail : 1.0f - tail;
}
inline Vec gelu_erf(Vec x) {
  x = max(broadcast(-20.0f), x);
  return x * normal_cdf(x);
}
inline Vec gelu_erf_grad(Vec x) {
  x = clamp(x, -20.0f, 20.0f);
  return fma(x, exp(x * x * -0.5f) * kInvSqrt2Pi, normal_cdf(x));
}

// The tanh form is x * sigmoid(u) with u = 2 sqrt(2/pi) (x + 0.044715 x^3): one exponential and one division,
// and no cancellation for negative x.
inline constexpr float kGeluLinear = 1.595769122f;
inline constexpr float kGeluCubic = 0.0713548163f;

inline Vec gelu_tanh(Vec x) {
  x = max(broadcast(-20.0f), x);
  const Vec minus_u = x * fma(x * x, broadcast(-kGeluCubic), broadcast(-kGeluLinear));
  return x / (1.0f + exp(minus_u));
}
inline Vec gelu_tanh_grad(Vec x) {
  x = clamp(x, -10.0f, 10.0f);
  const Vec square = x * x;
  const Vec e = exp(x * fma(square, broadcast(-kGeluCubic), broadcast(-kGeluLinear)));
  const Vec s = 1.0f / (1.0f + e);
  const Vec slope = fma(square, broadcast(3.0f * kGeluCubic), broadcast(kGeluLinear));
  return s * fma(x * slope, e * s, broadcast(1.0f));
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
