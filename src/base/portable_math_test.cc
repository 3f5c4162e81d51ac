// The portable functions against those of the C library, within their stated error, and golden bits.
#include "base/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

constexpr double kUlp = 0x1p-52;

TEST(PortableMath, LogarithmIsCloseEverywhere) {
  for (double x = 1e-300; x < 1e300; x *= 1.37)
    EXPECT_NEAR(portable_log(x), std::log(x), 2 * kUlp * std::fmax(std::fabs(std::log(x)), 0.5)) << x;
  EXPECT_EQ(portable_log(1.0), 0.0);
}

TEST(PortableMath, Log1pKeepsSmallValues) {
  EXPECT_EQ(portable_log1p(0.0), 0.0);
  for (double x = 1e-20; x < 1e15; x *= 1.37)
    EXPECT_NEAR(portable_log1p(x), std::log1p(x), 4 * kUlp * std::log1p(x)) << x;
}

TEST(PortableMath, ExponentialIsClose) {
  EXPECT_EQ(portable_exp(0.0), 1.0);
  for (double x = -700; x < 700; x += 0.373) EXPECT_NEAR(portable_exp(x) / std::exp(x), 1.0, 2 * kUlp) << x;
  EXPECT_TRUE(std::isfinite(portable_exp(1e9)));
}

TEST(PortableMath, SineAndCosineOfATurn) {
  for (uint64_t turn = 0; turn < uint64_t{1} << 32; turn += 10000019) {
    const double angle = static_cast<double>(turn) * 0x1p-32 * 2 * std::acos(-1.0);
    const SinCos both = portable_sin_cos(static_cast<uint32_t>(turn));
    EXPECT_NEAR(both.sin, std::sin(angle), 8 * kUlp);
    EXPECT_NEAR(both.cos, std::cos(angle), 8 * kUlp);
  }
}

TEST(PortableMath, GoldenBits) {
  EXPECT_EQ(portable_log(10.0), 0x1.26bb1bbb55515p+1);
  EXPECT_EQ(portable_exp(1.0), 0x1.5bf0a8b14576ap+1);
}

}  // namespace
}  // namespace lockstep
