#include "base/portable_math.h"

#include <algorithm>
#include <bit>

namespace lockstep {
namespace {

constexpr double kLog2 = 0.6931471805599453;

// 2 atanh(s) by its series, for |s| < 0.172.
double twice_atanh(double s) {
  const double s2 = s * s;
  double series = 0.0;
  for (int k = 21; k >= 3; k -= 2) series = (series + 1.0 / k) * s2;
  return 2.0 * (s + s * series);
}

}  // namespace

// x = m 2^e with m in [0.70, 1.42), and log m = 2 atanh((m - 1) / (m + 1)).
double portable_log(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.41421356) {
    m *= 0.5;
    exponent += 1;
  }
  return exponent * kLog2 + twice_atanh((m - 1.0) / (m + 1.0));
}

// Below 0.4 the series takes x itself, so that small values keep their digits.
double portable_log1p(double x) { return x < 0.4 ? twice_atanh(x / (2.0 + x)) : portable_log(1.0 + x); }

// x = k log 2 + r with |r| <= log(2) / 2; log 2 is taken off in two parts, the first with enough trailing
// zeros that its product with k is exact.
double portable_exp(double x) {
  constexpr double kLog2High = 6.93147180369123816490e-01;
  constexpr double kLog2Low = 1.90821492927058770002e-10;
  x = std::clamp(x, -700.0, 700.0);
  const int k = static_cast<int>(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5));
  const double r = (x - k * kLog2High) - k * kLog2Low;
  double series = 1.0;
  for (int n = 14; n >= 1; --n) series = 1.0 + series * (r * (1.0 / n));
  return series * std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52);
}

// The quadrant is taken off in integers, which is exact, and leaves an angle of at most pi/4 for the Taylor
// series (remainder below 1e-16).
SinCos portable_sin_cos(uint32_t turn) {
  const uint32_t quadrant = (turn + (1u << 29)) >> 30;
  const int32_t rest = static_cast<int32_t>(turn - (quadrant << 30));
  const double x = rest * (6.283185307179586 * 0x1p-32);
  const double x2 = x * x;
  double s = 1.0;
  for (int k = 14; k >= 2; k -= 2) s = 1.0 - s * (x2 * (1.0 / (k * (k + 1))));
  s *= x;
  double c = 1.0;
  for (int k = 15; k >= 1; k -= 2) c = 1.0 - c * (x2 * (1.0 / (k * (k + 1))));
  switch (quadrant & 3) {
    case 0: return {s, c};
    case 1: return {c, -s};
    case 2: return {-s, -c};
    default: return {-c, s};
  }
}

}  // namespace lockstep
