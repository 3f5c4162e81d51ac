// Dropout loops and block norms against the scalar definitions.
#include "backend/cpu/simd/dropout_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/cpu/simd/available_loops.h"
#include "backend/cpu/simd/norm2_loops.h"
#include "base/philox.h"

namespace lockstep::cpu {
namespace {

std::vector<float> normal_values(size_t n, uint64_t stream) {
  std::vector<float> x(n);
  Philox(11, stream).fill_normal(x, 0.0f, 1.0f);
  return x;
}

TEST(DropoutLoops, EqualsTheScalarDefinitionOnAnyRange) {
  const uint64_t seed = 0x0123456789abcdef, stream = 0xfedcba9876543210;
  const std::vector<float> x = normal_values(301, 1);
  for (const auto& [isa, loops] : available_loops(avx2::dropout_loops, avx512::dropout_loops))
    for (double p : {0.0, 0.1, 0.5, 1.0})
      for (uint64_t first : {uint64_t{0}, uint64_t{3}, (uint64_t{1} << 34) - 130})
        for (int64_t begin : {0, 1, 2, 3, 8})
          for (int64_t end : {9, 40, 70, 130, 301}) {
            const float scale = p < 1.0 ? static_cast<float>(1.0 / (1.0 - p)) : 0.0f;
            std::vector<float> y(x.size(), 7.0f), expected(x.size(), 7.0f);
            for (int64_t i = begin; i < end; ++i)
              expected[i] = Philox(seed, stream).bernoulli(first + i, p) ? 0.0f : x[i] * scale;
            loops.dropout(x.data(), y.data(), begin, end,
                          {seed, stream, first, Philox::bernoulli_threshold(p), scale});
            ASSERT_EQ(y, expected) << isa << " p " << p << " [" << begin << ", " << end << ") from " << first;
          }
}

TEST(Norm2Loops, BlocksMatchADoubleSumAndEveryInstructionSet) {
  for (int64_t n : {1, 7, 31, 32, 33, 1023, 1024, 1025, 3000}) {
    const std::vector<float> x = normal_values(n, 2);
    std::vector<double> first_isa;
    for (const auto& [isa, loops] : available_loops(avx2::norm2_loops, avx512::norm2_loops)) {
      std::vector<double> partials(norm_blocks(n));
      EXPECT_TRUE(loops.block_squares(x.data(), n, 0, norm_blocks(n), partials.data()));
      double sum = 0, expected = 0;
      for (double partial : partials) sum += partial;
      for (float value : x) expected += double{value} * value;
      EXPECT_NEAR(sum, expected, 1e-12 * expected) << isa << " n " << n;
      if (first_isa.empty()) first_isa = partials;
      EXPECT_EQ(first_isa, partials) << isa << " n " << n;
    }
  }
}

TEST(Norm2Loops, FiniteCheckSeesEveryPositionAndIgnoresSize) {
  const int64_t n = 1100;
  for (const auto& [isa, loops] : available_loops(avx2::norm2_loops, avx512::norm2_loops)) {
    std::vector<double> partials(norm_blocks(n));
    std::vector<float> x(n, std::numeric_limits<float>::max());
    EXPECT_TRUE(loops.block_squares(x.data(), n, 0, 2, partials.data())) << isa;
    for (int64_t at = 0; at < n; at += 37) {
      for (float bad : {std::nanf(""), INFINITY, -INFINITY}) {
        x[at] = bad;
        EXPECT_FALSE(loops.block_squares(x.data(), n, 0, 2, partials.data())) << isa << " at " << at;
        x[at] = 1.0f;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::cpu
