// Rotary embedding against its formula in double, both pairings, in place and between strided buffers.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backend/cpu/simd/rope_loops.h"

namespace lockstep::cpu {
namespace {

std::vector<const RopeLoops*> available() {
  std::vector<const RopeLoops*> list = {&avx2::rope_loops};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    list.push_back(&avx512::rope_loops);
  return list;
}

std::vector<float> frequencies(int64_t pairs) {
  std::vector<float> f;
  for (int64_t i = 0; i < pairs; ++i)
    f.push_back(static_cast<float>(std::pow(10000.0, -double(i) / double(pairs))));
  return f;
}

struct Tables {
  std::vector<float> cos, sin;
  Tables(const RopeLoops& loops, int64_t pairs, int64_t positions)
      : cos(pairs * positions), sin(pairs * positions) {
    loops.fill_tables(frequencies(pairs).data(), pairs, 0, positions, cos.data(), sin.data());
  }
};

TEST(Rope, TablesAreCosAndSinOfTheRoundedAngle) {
  constexpr int64_t kPairs = 16, kFirst = 100000, kLast = 100100;
  const std::vector<float> f = frequencies(kPairs);
  for (const RopeLoops* loops : available()) {
    std::vector<float> cos(kPairs * kLast), sin(kPairs * kLast);
    loops->fill_tables(f.data(), kPairs, 0, 500, cos.data(), sin.data());
    loops->fill_tables(f.data(), kPairs, kFirst, kLast, cos.data(), sin.data());
    for (int64_t position = 0; position < kLast; ++position) {
      if (position == 500) position = kFirst;
      for (int64_t i = 0; i < kPairs; ++i) {
        const double angle = static_cast<float>(position) * f[i];
        EXPECT_FLOAT_EQ(cos[position * kPairs + i], static_cast<float>(std::cos(angle)));
        EXPECT_FLOAT_EQ(sin[position * kPairs + i], static_cast<float>(std::sin(angle)));
      }
    }
  }
}

struct Case {
  int64_t head_dim, rotary_dim;
  bool interleaved, inverse, in_place;
};

void check(const RopeLoops& loops, const Case& c) {
  constexpr int64_t kBatch = 2, kTokens = 5, kHeads = 3, kPositions = 40;
  const int64_t pairs = c.rotary_dim / 2, row = kHeads * c.head_dim + 7;
  const HeadStrides strides{row, c.head_dim + 1, kTokens * row};
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> x(kBatch * kTokens * row);
  for (float& value : x) value = uniform(random);
  std::vector<int32_t> positions;
  for (int64_t i = 0; i < kBatch * kTokens; ++i)
    positions.push_back(static_cast<int32_t>(random() % kPositions));
  const Tables tables(loops, pairs, kPositions);
  std::vector<float> y = x;
  RopeRotation r{kBatch,
                 kTokens,
                 kHeads,
                 c.head_dim,
                 c.rotary_dim,
                 c.interleaved,
                 c.inverse,
                 positions.data(),
                 tables.cos.data(),
                 tables.sin.data(),
                 c.in_place ? y.data() : x.data(),
                 y.data(),
                 strides,
                 strides};
  loops.rotate(r, 0, 4);
  loops.rotate(r, 4, kBatch * kTokens);

  std::vector<double> expected(x.begin(), x.end());
  for (int64_t token = 0; token < kBatch * kTokens; ++token)
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t i = 0; i < pairs; ++i) {
        const int64_t start = token * row + h * strides.head;
        const int64_t first = start + (c.interleaved ? 2 * i : i);
        const int64_t second = start + (c.interleaved ? 2 * i + 1 : i + pairs);
        const double cos = tables.cos[positions[token] * pairs + i];
        const double sin = (c.inverse ? -1.0 : 1.0) * tables.sin[positions[token] * pairs + i];
        expected[first] = x[first] * cos - x[second] * sin;
        expected[second] = x[second] * cos + x[first] * sin;
      }
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(expected[i], y[i], 3e-7) << i;
}

TEST(Rope, RotatesPairs) {
  for (const RopeLoops* loops : available())
    for (int64_t rotary_dim : {2, 6, 8, 16, 18, 32, 34, 64})
      for (int64_t extra : {0, 5})
        for (int flags = 0; flags < 8; ++flags)
          check(*loops,
                {rotary_dim + extra, rotary_dim, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0});
}

TEST(Rope, WithoutPositionsTokensCountFromZeroInEverySequence) {
  constexpr int64_t kTokens = 6, kDim = 20;
  for (const RopeLoops* loops : available()) {
    const Tables tables(*loops, kDim / 2, kTokens);
    std::vector<float> x(2 * kTokens * kDim, 0.5f), counted(x.size()), given(x.size());
    std::vector<int32_t> positions;
    for (int32_t i = 0; i < 2 * kTokens; ++i) positions.push_back(i % kTokens);
    RopeRotation r{2,
                   kTokens,
                   1,
                   kDim,
                   kDim,
                   false,
                   false,
                   nullptr,
                   tables.cos.data(),
                   tables.sin.data(),
                   x.data(),
                   counted.data(),
                   {kDim, kDim, kTokens * kDim},
                   {kDim, kDim, kTokens * kDim}};
    loops->rotate(r, 0, 2 * kTokens);
    r.positions = positions.data();
    r.y = given.data();
    loops->rotate(r, 0, 2 * kTokens);
    EXPECT_EQ(counted, given);
  }
}

}  // namespace
}  // namespace lockstep::cpu
