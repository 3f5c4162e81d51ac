// Stochastic rounding against its scalar definition, and without bias.
#include "backend/cpu/simd/rounding_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/cpu/simd/available_loops.h"
#include "base/dtype.h"
#include "ops/stochastic_rounding.h"

namespace lockstep::cpu {
namespace {

constexpr uint64_t kSeed = 0x0123456789abcdef, kStream = 0xfedcba9876543210;

float widened(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

TEST(RoundingLoops, EqualsTheScalarDefinitionOnAnyRange) {
  std::vector<float> x(301);
  Philox(5, 1).fill_normal(x, 0.0f, 1.0f);
  for (const auto& [isa, loops] : available_loops(avx2::rounding_loops, avx512::rounding_loops))
    for (int64_t begin : {0, 4, 8})
      for (int64_t end : {8, 9, 40, 47, 70, 130, 301})
        for (int64_t first : {0, 4, 1024}) {
          std::vector<uint16_t> y(x.size(), 7), expected(x.size(), 7);
          for (int64_t i = begin; i < end; ++i)
            expected[i] = static_cast<uint16_t>(
                std::bit_cast<uint32_t>(round_stochastically(x[i], Philox(kSeed, kStream).bits(first + i))) >>
                16);
          loops.round_stochastic(x.data(), y.data(), begin, end, first, kSeed, kStream);
          ASSERT_EQ(y, expected) << isa << " [" << begin << ", " << end << ") from " << first;
        }
}

TEST(RoundingLoops, KeepsWhatBf16HoldsAndWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0.0f, -0.0f, 1.0f, -1.5f, inf, -inf, std::nanf(""), 0x1p-126f, 0x1p-133f};
  for (const auto& [isa, loops] : available_loops(avx2::rounding_loops, avx512::rounding_loops))
    for (uint64_t seed = 0; seed < 64; ++seed) {
      std::vector<uint16_t> y(x.size());
      loops.round_stochastic(x.data(), y.data(), 0, static_cast<int64_t>(x.size()), 0, seed, kStream);
      for (size_t i = 0; i < x.size(); ++i)
        if (std::isnan(x[i]))
          EXPECT_EQ(y[i], 0x7fc0) << isa;
        else
          EXPECT_EQ(std::bit_cast<uint32_t>(widened(y[i])), std::bit_cast<uint32_t>(x[i])) << isa << " " << i;
    }
}

// Each draw is one of the two neighbours, and the mean over n draws of numbers that are a quarter of the way
// lies within five standard errors.
TEST(RoundingLoops, TheMeanIsTheNumber) {
  constexpr int64_t kDraws = 1 << 18;
  for (const float sign : {1.0f, -1.0f}) {
    const float low = 1.0f, high = 1.0f + 0x1p-7f;
    const std::vector<float> x(kDraws, sign * (low + 0.25f * (high - low)));
    for (const auto& [isa, loops] : available_loops(avx2::rounding_loops, avx512::rounding_loops)) {
      std::vector<uint16_t> y(x.size());
      loops.round_stochastic(x.data(), y.data(), 0, kDraws, 0, kSeed, kStream);
      int64_t up = 0;
      for (const uint16_t bits : y) {
        const float value = sign * widened(bits);
        ASSERT_TRUE(value == low || value == high) << isa << " " << value;
        up += value == high;
      }
      const double error = std::sqrt(0.25 * 0.75 / kDraws);
      EXPECT_NEAR(static_cast<double>(up) / kDraws, 0.25, 5 * error) << isa;
    }
  }
}

}  // namespace
}  // namespace lockstep::cpu
