#include "base/portable_math.h"

#include <algorithm>
#include <bit>

#include "base/draw_arithmetic.h"

namespace lockstep {

double portable_log(double x) { return draws::log_of(x); }

// Below 0.4 the series takes x itself, so that small values keep their digits.
double portable_log1p(double x) {
  return x < 0.4 ? draws::twice_atanh(x / (2.0 + x)) : portable_log(1.0 + x);
}

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

SinCos portable_sin_cos(uint32_t turn) { return draws::sin_cos_of(turn); }

}  // namespace lockstep
