// Tile primitives: simple functions against their formula, tails and aliasing bit for bit, storage
// conversions.
#include "backend/cpu/simd/pointwise_loops.h"

#include <functional>

#include "backend/cpu/simd/loops_testing.h"

namespace lockstep::cpu {
namespace {

class PointwiseLoopsTest : public LoopsTest {
 protected:
  std::vector<float> run(int f, const std::vector<float>& a, const std::vector<float>& b,
                         const std::vector<float>& c) const {
    std::vector<float> out(a.size());
    GetParam().pointwise.tile[f](out.data(), a.data(), b.data(), c.data(), static_cast<int64_t>(a.size()));
    return out;
  }
};

TEST_P(PointwiseLoopsTest, FormulasHoldExactly) {
  using Formula = std::function<float(float, float, float)>;
  const std::vector<std::pair<Scalar, Formula>> formulas = {
      {Scalar::copy, [](float a, float, float) { return a; }},
      {Scalar::neg, [](float a, float, float) { return -a; }},
      {Scalar::abs, [](float a, float, float) { return std::abs(a); }},
      {Scalar::sign, [](float a, float, float) { return a > 0   ? 1.0f
                                                        : a < 0 ? -1.0f
                                                                : a; }},
      {Scalar::square, [](float a, float, float) { return a * a; }},
      {Scalar::reciprocal, [](float a, float, float) { return 1.0f / a; }},
      {Scalar::relu, [](float a, float, float) { return a < 0 ? 0.0f : a; }},
      {Scalar::logical_not, [](float a, float, float) { return a == 0 ? 1.0f : 0.0f; }},
      {Scalar::add, [](float a, float b, float) { return a + b; }},
      {Scalar::sub, [](float a, float b, float) { return a - b; }},
      {Scalar::mul, [](float a, float b, float) { return a * b; }},
      {Scalar::div, [](float a, float b, float) { return a / b; }},
      {Scalar::min, [](float a, float b, float) { return a < b ? a : b; }},
      {Scalar::max, [](float a, float b, float) { return a > b ? a : b; }},
      {Scalar::eq, [](float a, float b, float) { return a == b ? 1.0f : 0.0f; }},
      {Scalar::ne, [](float a, float b, float) { return a != b ? 1.0f : 0.0f; }},
      {Scalar::lt, [](float a, float b, float) { return a < b ? 1.0f : 0.0f; }},
      {Scalar::le, [](float a, float b, float) { return a <= b ? 1.0f : 0.0f; }},
      {Scalar::gt, [](float a, float b, float) { return a > b ? 1.0f : 0.0f; }},
      {Scalar::ge, [](float a, float b, float) { return a >= b ? 1.0f : 0.0f; }},
      {Scalar::logical_and, [](float a, float b, float) { return a != 0 && b != 0 ? 1.0f : 0.0f; }},
      {Scalar::logical_or, [](float a, float b, float) { return a != 0 || b != 0 ? 1.0f : 0.0f; }},
      {Scalar::where, [](float a, float b, float c) { return a != 0 ? b : c; }},
      {Scalar::fma, [](float a, float b, float c) { return std::fma(a, b, c); }},
  };
  auto a = random_floats(100, 1), b = random_floats(100, 2), c = random_floats(100, 3);
  for (size_t i = 0; i < 100; i += 3) b[i] = a[i];
  for (size_t i = 0; i < 100; i += 7) a[i] = 0.0f;
  for (const auto& [scalar, formula] : formulas) {
    std::vector<float> want;
    for (size_t i = 0; i < 100; ++i) want.push_back(formula(a[i], b[i], c[i]));
    EXPECT_EQ(bits(run(static_cast<int>(scalar), a, b, c)), bits(want)) << static_cast<int>(scalar);
  }
}

TEST_P(PointwiseLoopsTest, AnElementsBitsDoNotDependOnItsPlaceInTheTile) {
  const auto a = random_floats(40, 1), b = random_floats(40, 2), c = random_floats(40, 3);
  for (int f = 0; f < kScalarCount; ++f) {
    std::vector<float> alone(40);
    for (int i = 0; i < 40; ++i) GetParam().pointwise.tile[f](&alone[i], &a[i], &b[i], &c[i], 1);
    for (int n = 1; n <= 40; ++n) {
      std::vector<float> out(41, 77.0f);
      GetParam().pointwise.tile[f](out.data(), a.data(), b.data(), c.data(), n);
      for (int i = 0; i < n; ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(alone[i])) << f << " n=" << n;
      ASSERT_EQ(out[n], 77.0f) << "function " << f << " wrote past " << n;
    }
  }
}

TEST_P(PointwiseLoopsTest, ResultMayReplaceAnyOperand) {
  const auto a = random_floats(37, 1), b = random_floats(37, 2), c = random_floats(37, 3);
  for (int f = 0; f < kScalarCount; ++f) {
    const auto want = bits(run(f, a, b, c));
    auto in_a = a, in_b = b, in_c = c;
    const auto tile = GetParam().pointwise.tile[f];
    tile(in_a.data(), in_a.data(), b.data(), c.data(), 37);
    tile(in_b.data(), a.data(), in_b.data(), c.data(), 37);
    tile(in_c.data(), a.data(), b.data(), in_c.data(), 37);
    EXPECT_EQ(bits(in_a), want) << f;
    EXPECT_EQ(bits(in_b), want) << f;
    EXPECT_EQ(bits(in_c), want) << f;
  }
}

TEST_P(PointwiseLoopsTest, ScalarOperandEqualsFilledTile) {
  const PointwiseLoops& loops = GetParam().pointwise;
  const auto a = random_floats(37, 1);
  std::vector<float> filled(37), out(37);
  loops.fill(filled.data(), 1.5f, 37);
  for (int f = 0; f < kScalarCount; ++f) {
    const bool binary = arity(static_cast<Scalar>(f)) == 2;
    ASSERT_EQ(loops.tile_scalar[f] != nullptr, binary);
    ASSERT_EQ(loops.scalar_tile[f] != nullptr, binary);
    if (!binary) continue;
    loops.tile_scalar[f](out.data(), a.data(), 1.5f, 37);
    EXPECT_EQ(bits(out), bits(run(f, a, filled, a))) << f;
    loops.scalar_tile[f](out.data(), 1.5f, a.data(), 37);
    EXPECT_EQ(bits(out), bits(run(f, filled, a, a))) << f;
  }
}

TEST_P(PointwiseLoopsTest, HalfPrecisionRoundTripsEveryValue) {
  const PointwiseLoops& loops = GetParam().pointwise;
  std::vector<uint16_t> all(65536), back(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(65536);
  loops.from_bf16(wide.data(), all.data(), 65536);
  loops.to_bf16(back.data(), wide.data(), 65536);
  for (int i = 0; i < 65536; ++i) ASSERT_EQ(back[i], std::isnan(wide[i]) ? 0x7fc0 : i);
  EXPECT_EQ(wide[0x3f80], 1.0f);
  loops.from_f16(wide.data(), all.data(), 65536);
  loops.to_f16(back.data(), wide.data(), 65536);
  for (int i = 0; i < 65536; ++i) ASSERT_EQ(back[i], std::isnan(wide[i]) ? 0x7e00 : i);
  EXPECT_EQ(wide[0x3c00], 1.0f);
  EXPECT_EQ(wide[0x0001], std::ldexp(1.0f, -24));
}

TEST_P(PointwiseLoopsTest, HalfPrecisionRoundsToNearestEven) {
  const PointwiseLoops& loops = GetParam().pointwise;
  const float ties[] = {1.0f + 0x1p-8f, 1.0f + 0x3p-8f, 1.0f + 0x1p-11f, 1.0f + 0x3p-11f, 1e6f, -1e6f};
  uint16_t out[6];
  loops.to_bf16(out, ties, 2);
  EXPECT_EQ(out[0], 0x3f80);
  EXPECT_EQ(out[1], 0x3f82);
  loops.to_f16(out, ties + 2, 4);
  EXPECT_EQ(out[0], 0x3c00);
  EXPECT_EQ(out[1], 0x3c02);
  EXPECT_EQ(out[2], 0x7c00);
  EXPECT_EQ(out[3], 0xfc00);
}

TEST_P(PointwiseLoopsTest, IntegerConversionsWithEveryTail) {
  const PointwiseLoops& loops = GetParam().pointwise;
  const float values[] = {0.0f, 1.9f, -1.9f, 255.0f, 300.0f, -0.0f, NAN, 1e20f};
  const int32_t ints[] = {0, 1, -1, 255, 300, 0, INT32_MIN, INT32_MIN};
  const uint8_t bytes[] = {0, 1, 0, 255, 255, 0, 0, 255};
  const uint8_t bools[] = {0, 1, 1, 1, 1, 0, 1, 1};
  for (int n = 1; n <= 40; ++n) {
    std::vector<float> in(n), wide(n + 1, 77.0f);
    for (int i = 0; i < n; ++i) in[i] = values[i % 8];
    std::vector<int32_t> to_i32(n + 1, 77);
    std::vector<uint8_t> to_u8(n + 1, 77), to_bool(n + 1, 77);
    loops.to_i32(to_i32.data(), in.data(), n);
    loops.to_u8(to_u8.data(), in.data(), n);
    loops.to_bool(to_bool.data(), in.data(), n);
    for (int i = 0; i < n; ++i) {
      ASSERT_EQ(to_i32[i], ints[i % 8]);
      ASSERT_EQ(to_u8[i], bytes[i % 8]);
      ASSERT_EQ(to_bool[i], bools[i % 8]);
    }
    ASSERT_EQ(to_i32[n], 77);
    ASSERT_EQ(to_u8[n], 77);
    ASSERT_EQ(to_bool[n], 77);
    loops.from_i32(wide.data(), to_i32.data(), n);
    for (int i = 0; i < n; ++i) ASSERT_EQ(wide[i], static_cast<float>(ints[i % 8]));
    loops.from_u8(wide.data(), to_u8.data(), n);
    for (int i = 0; i < n; ++i) ASSERT_EQ(wide[i], static_cast<float>(bytes[i % 8]));
    ASSERT_EQ(wide[n], 77.0f);
  }
}

LOCKSTEP_TEST_EVERY_ISA(PointwiseLoopsTest);

}  // namespace
}  // namespace lockstep::cpu
