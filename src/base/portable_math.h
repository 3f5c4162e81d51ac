// Logarithm, exponential, sine and cosine with the same bits on every machine and compiler: IEEE double
// arithmetic in written order only, where the C library's last bit differs between versions. For whatever
// becomes part of a run's identity: random draws, generated data, fitted constants.
#pragma once
#include <cstdint>

namespace lockstep {

// Natural logarithm of a normal positive double, within 2 ulp.
double portable_log(double x);
// log(1 + x) for x >= 0, within 4 ulp.
double portable_log1p(double x);
// e^x within 2 ulp; x is clamped to [-700, 700].
double portable_exp(double x);

struct SinCos {
  double sin, cos;
};

// Sine and cosine of 2 pi turn / 2^32, within 1 ulp of 1.
SinCos portable_sin_cos(uint32_t turn);

}  // namespace lockstep
