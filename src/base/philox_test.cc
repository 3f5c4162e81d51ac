// Philox: known answers, the index rule, moments of the distributions, and equality of fills made whole or in
// pieces.
#include "base/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep {
namespace {

using Words = std::array<uint32_t, 4>;

TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, IndexIsWordOfBlock) {
  const Philox random(0x1122334455667788, 0x99aabbccddeeff00);
  const uint64_t index = (uint64_t{5} << 34) + 4 * 7 + 2;
  const Words block = philox4x32({7, 5, 0xddeeff00, 0x99aabbcc}, {0x55667788, 0x11223344});
  EXPECT_EQ(random.bits(index), block[2]);
}

// The bits themselves are the contract: a change of one of these values breaks every recorded run.
TEST(Philox, NormalGoldenBits) {
  const Philox random(42, 7);
  const float expected[] = {0x1.10adbap+0f, -0x1.a2929ap-1f, -0x1.512068p-1f, 0x1.22037ep+0f,
                            -0x1.50834p-2f, 0x1.4f858cp-2f,  0x1.f917b6p-2f,  0x1.e874a2p-1f};
  for (uint64_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(random.normal(i), expected[i]) << i;
}

TEST(Philox, NormalFollowsBoxMullerOfTheCLibrary) {
  const Philox random(3, 1);
  for (uint64_t i = 0; i < 20000; i += 2) {
    const double radius = std::sqrt(-2.0 * std::log((random.bits(i) + 0.5) / 4294967296.0));
    const double angle = 2.0 * std::acos(-1.0) * random.bits(i + 1) / 4294967296.0;
    EXPECT_NEAR(random.normal(i), radius * std::cos(angle), 5e-7);
    EXPECT_NEAR(random.normal(i + 1), radius * std::sin(angle), 5e-7);
  }
}

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

Moments moments(const std::vector<float>& x) {
  Moments m;
  const double n = static_cast<double>(x.size());
  for (float v : x) m.mean += v / n;
  double third = 0, fourth = 0;
  for (float v : x) {
    const double d = v - m.mean;
    m.variance += d * d / n;
    third += d * d * d / n;
    fourth += d * d * d * d / n;
  }
  m.skewness = third / std::pow(m.variance, 1.5);
  m.kurtosis = fourth / (m.variance * m.variance);
  return m;
}

// Bounds are five standard errors of each estimate for n independent draws.
TEST(Philox, NormalMoments) {
  const double n = 400000;
  std::vector<float> x(static_cast<size_t>(n));
  Philox(1, 2).fill_normal(x, 0.0f, 1.0f);
  const Moments m = moments(x);
  EXPECT_NEAR(m.mean, 0.0, 5.0 * std::sqrt(1.0 / n));
  EXPECT_NEAR(m.variance, 1.0, 5.0 * std::sqrt(2.0 / n));
  EXPECT_NEAR(m.skewness, 0.0, 5.0 * std::sqrt(6.0 / n));
  EXPECT_NEAR(m.kurtosis, 3.0, 5.0 * std::sqrt(24.0 / n));
  double product = 0;
  for (size_t i = 0; i + 1 < x.size(); ++i) product += double{x[i]} * x[i + 1] / n;
  EXPECT_NEAR(product, 0.0, 5.0 * std::sqrt(1.0 / n));
}

TEST(Philox, UniformMoments) {
  const double n = 400000;
  std::vector<float> x(static_cast<size_t>(n));
  Philox(1, 3).fill_uniform(x, 0.0f, 1.0f);
  const Moments m = moments(x);
  EXPECT_NEAR(m.mean, 0.5, 5.0 * std::sqrt(1.0 / 12.0 / n));
  EXPECT_NEAR(m.variance, 1.0 / 12.0, 5.0 * std::sqrt(1.0 / 180.0 / n));
  EXPECT_NEAR(m.kurtosis, 1.8, 0.02);
  for (float v : x) ASSERT_TRUE(v >= 0.0f && v < 1.0f);
}

TEST(Philox, BernoulliFrequencyAndExtremes) {
  const Philox random(9, 9);
  const int n = 200000;
  for (double p : {0.1, 0.5, 0.9}) {
    int hits = 0;
    for (int i = 0; i < n; ++i) hits += random.bernoulli(i, p);
    EXPECT_NEAR(hits, n * p, 5.0 * std::sqrt(n * p * (1 - p)));
  }
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(random.bernoulli(i, 0.0));
    EXPECT_TRUE(random.bernoulli(i, 1.0));
  }
  EXPECT_EQ(Philox::bernoulli_threshold(std::nan("")), 0u);
}

TEST(Philox, FillInPiecesEqualsFillWhole) {
  const Philox random(5, 6);
  std::vector<float> whole(103), pieces(103);
  random.fill_normal(whole, 0.5f, 0.02f, 1000001);
  for (size_t begin = 0; begin < whole.size(); begin += 9)
    random.fill_normal(std::span(pieces).subspan(begin, std::min<size_t>(9, whole.size() - begin)), 0.5f,
                       0.02f, 1000001 + begin);
  EXPECT_EQ(whole, pieces);
  for (size_t j = 0; j < whole.size(); ++j) EXPECT_EQ(whole[j], 0.5f + 0.02f * random.normal(1000001 + j));
}

TEST(Philox, UniformFillNeverReachesTheUpperEnd) {
  std::vector<float> x(4096);
  const float lo = 1.0f, hi = std::nextafter(1.0f, 2.0f);
  Philox(0, 0).fill_uniform(x, lo, hi);
  for (float v : x) ASSERT_EQ(v, lo);
}

TEST(Philox, StreamsAndSeedsAreApart) {
  const Philox a(1, 1), b(1, 2), c(2, 1);
  int equal = 0;
  for (int i = 0; i < 1000; ++i) equal += (a.bits(i) == b.bits(i)) + (a.bits(i) == c.bits(i));
  EXPECT_EQ(equal, 0);
}

}  // namespace
}  // namespace lockstep
