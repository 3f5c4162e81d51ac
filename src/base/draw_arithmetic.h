// The arithmetic of random draws, in one place for the host and for device code: IEEE double operations and
// square roots in written order, which give the same bits wherever no compiler fuses them
// (-ffp-contract=off, --fmad=false). philox.h and portable_math.h are how the host uses it.
//
// Written without branches, so that loops over it become vector code; of internal linkage, so that what is
// compiled for a wide instruction set is merged with nothing else.
#pragma once
#include <cstdint>

#include "base/portable_math.h"

#ifdef __CUDACC__
#include <cmath>
#define LOCKSTEP_DRAW __host__ __device__ static inline
#define LOCKSTEP_ROOT(x) sqrt(x)
#else
#define LOCKSTEP_DRAW [[gnu::always_inline]] static inline
#define LOCKSTEP_ROOT(x) __builtin_sqrt(x)
#endif

namespace lockstep::draws {

// 2 atanh(s) by its series, for |s| < 0.172.
LOCKSTEP_DRAW double twice_atanh(double s) {
  const double s2 = s * s;
  double series = 0.0;
  for (int k = 21; k >= 3; k -= 2) series = (series + 1.0 / k) * s2;
  return 2.0 * (s + s * series);
}

// x = m 2^e with m in [0.70, 1.42), and log m = 2 atanh((m - 1) / (m + 1)).
LOCKSTEP_DRAW double log_of(double x) {
  constexpr double kLog2 = 0.6931471805599453;
  const uint64_t bits = __builtin_bit_cast(uint64_t, x);
  const double mantissa = __builtin_bit_cast(double, (bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  const bool halves = mantissa > 1.41421356;
  const double m = halves ? mantissa * 0.5 : mantissa;
  const int exponent = static_cast<int>(bits >> 52) - (halves ? 1022 : 1023);
  return exponent * kLog2 + twice_atanh((m - 1.0) / (m + 1.0));
}

// The quadrant is taken off in integers, which is exact, and leaves an angle of at most pi/4 for the Taylor
// series (remainder below 1e-16).
LOCKSTEP_DRAW SinCos sin_cos_of(uint32_t turn) {
  const uint32_t quadrant = (turn + (1u << 29)) >> 30;
  const int32_t rest = static_cast<int32_t>(turn - (quadrant << 30));
  const double x = rest * (6.283185307179586 * 0x1p-32);
  const double x2 = x * x;
  double s = 1.0;
  for (int k = 14; k >= 2; k -= 2) s = 1.0 - s * (x2 * (1.0 / (k * (k + 1))));
  s *= x;
  double c = 1.0;
  for (int k = 15; k >= 1; k -= 2) c = 1.0 - c * (x2 * (1.0 / (k * (k + 1))));
  const bool swaps = (quadrant & 1) != 0;
  const double sin = swaps ? c : s, cos = swaps ? s : c;
  return {(quadrant & 2) != 0 ? -sin : sin, ((quadrant + 1) & 2) != 0 ? -cos : cos};
}

struct NormalPair {
  float even, odd;
};

// Box-Muller over two words.
LOCKSTEP_DRAW NormalPair normal_pair(uint32_t radius_bits, uint32_t turn) {
  const double u = (radius_bits + 0.5) * 0x1p-32;
  const double radius = LOCKSTEP_ROOT(-2.0 * log_of(u));
  const SinCos angle = sin_cos_of(turn);
  return {static_cast<float>(radius * angle.cos), static_cast<float>(radius * angle.sin)};
}

// In [0, 1), a multiple of 2^-24.
LOCKSTEP_DRAW float uniform_of(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

}  // namespace lockstep::draws
