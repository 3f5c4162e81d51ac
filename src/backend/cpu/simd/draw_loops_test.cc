// Draws by vectors against the scalar definition.
#include "backend/cpu/simd/draw_loops.h"

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/cpu/simd/available_loops.h"
#include "base/philox.h"

namespace lockstep::cpu {
namespace {

TEST(DrawLoops, HaveTheBitsOfTheScalarDefinition) {
  const uint64_t seed = 0x0123456789abcdef, stream = 0xfedcba9876543210;
  for (const auto& [isa, loops] : available_loops(avx2::draw_loops, avx512::draw_loops))
    for (const uint64_t first : {uint64_t{0}, uint64_t{4}, (uint64_t{1} << 34) - 128}) {
      std::vector<float> got(100000), want(got.size());
      Philox(seed, stream).fill_normal(want, 0.25f, 0.02f, first);
      const int64_t done = loops.fill_normal({seed, stream, 0.25f, 0.02f}, first, got.data(),
                                             static_cast<int64_t>(got.size()));
      EXPECT_GT(done, static_cast<int64_t>(got.size()) - 128);
      got.resize(static_cast<size_t>(done));
      want.resize(got.size());
      EXPECT_EQ(got, want) << isa << " from " << first;
    }
}

TEST(DrawLoops, TheBackendFillsAnyPartOfATensor) {
  using Kind = RandomFill::Kind;
  const auto backend = make_cpu_backend(3);
  for (const RandomFill& fill :
       {RandomFill{Kind::kConstant, 0.5f}, RandomFill{Kind::kNormal, 0, 0.02f, 7, 8, 1000, 20000},
        RandomFill{Kind::kUniform, -0.1f, 0.1f, 7, 9}})
    for (const int64_t first : {0, 1, 16386})
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        constexpr int64_t kCount = 50001;
        std::vector<float> want(kCount), got(kCount);
        fill.fill(first, want);
        ASSERT_TRUE(backend->draw(fill, dtype, first, got.data(), kCount));
        for (int64_t i = 0; i < kCount; ++i) {
          double rounded = 0;
          write_element(dtype, &rounded, 0, static_cast<double>(want[static_cast<size_t>(i)]));
          ASSERT_EQ(read_element(dtype, got.data(), i), read_element(dtype, &rounded, 0)) << i;
        }
      }
}

}  // namespace
}  // namespace lockstep::cpu
