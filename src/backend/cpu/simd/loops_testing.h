// For the tests of this folder: the loops of every instruction set that this processor has, and test data.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/simd/channel_loops.h"
#include "backend/cpu/simd/norm_loops.h"
#include "backend/cpu/simd/pointwise_loops.h"
#include "backend/cpu/simd/reduce_loops.h"
#include "backend/cpu/simd/softmax_loops.h"

namespace lockstep::cpu {

struct IsaLoops {
  std::string name;
  const PointwiseLoops& pointwise;
  const ReduceLoops& reduce;
  const SoftmaxLoops& softmax;
  const NormLoops& norm;
  const ChannelLoops& channel;
};

inline void PrintTo(const IsaLoops& loops, std::ostream* out) { *out << loops.name; }

inline std::vector<IsaLoops> supported_loops() {
  std::vector<IsaLoops> all;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    all.push_back({"avx2", avx2::pointwise_loops, avx2::reduce_loops, avx2::softmax_loops, avx2::norm_loops,
                   avx2::channel_loops});
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    all.push_back({"avx512", avx512::pointwise_loops, avx512::reduce_loops, avx512::softmax_loops,
                   avx512::norm_loops, avx512::channel_loops});
  return all;
}

class LoopsTest : public testing::TestWithParam<IsaLoops> {};

#define LOCKSTEP_TEST_EVERY_ISA(Suite)                                       \
  INSTANTIATE_TEST_SUITE_P(Isa, Suite, testing::ValuesIn(supported_loops()), \
                           [](const auto& info) { return info.param.name; })

inline std::vector<float> random_floats(int64_t n, uint32_t seed, float low = -3.0f, float high = 3.0f) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = distribution(generator);
  return values;
}

inline std::vector<uint32_t> bits(const std::vector<float>& values) {
  std::vector<uint32_t> result;
  for (float v : values) result.push_back(std::bit_cast<uint32_t>(v));
  return result;
}

inline void expect_close(const std::vector<float>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << "at " << i;
}

}  // namespace lockstep::cpu
