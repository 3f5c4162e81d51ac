// Replayed steps of AdamW equal dense steps with a gradient of zero bit for bit, also where the replay leaves
// out what cannot change a parameter.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/optimizer_steps.h"
#include "backend/cpu/simd/available_loops.h"
#include "base/philox.h"

namespace lockstep::cpu {
namespace {

constexpr int64_t kRow = 40;  // groups of two and of one, and a partial Vec

struct State {
  std::vector<float> p, m, v;
  bool operator==(const State& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    return same(p, other.p) && same(m, other.m) && same(v, other.v);
  }
};

// A row whose numbers lie around 2^exponent each.
State row_near(int p_exponent, int m_exponent, int v_exponent, uint64_t stream) {
  const Philox random(77, stream);
  State row;
  for (int64_t i = 0; i < kRow; ++i) {
    const auto draw = [&](uint64_t which, int exponent) {
      const float x = random.uniform(3 * static_cast<uint64_t>(i) + which) - 0.5f;
      return std::ldexp(x, exponent);
    };
    row.p.push_back(draw(0, p_exponent));
    row.m.push_back(draw(1, m_exponent));
    row.v.push_back(std::fabs(draw(2, v_exponent)));
  }
  return row;
}

// A learning rate that rises, falls and starts again.
std::vector<AdamStep> schedule(AdamOptions options, int64_t first, int64_t k) {
  std::vector<AdamStep> steps;
  for (int64_t t = first; t < first + k; ++t) {
    options.lr = t % 300 == 299 ? 0.5 : 1e-3 / static_cast<double>(1 + t % 100);
    steps.push_back(adam_step(options, t, 1.0f));
  }
  return steps;
}

void expect_equal_to_dense(const State& start, const std::vector<AdamStep>& steps, const std::string& what) {
  const std::vector<float> zeros(kRow, 0.0f);
  for (const auto& [isa, loops] : available_loops(avx2::optimizer_loops, avx512::optimizer_loops)) {
    State dense = start, lazy = start;
    for (const AdamStep& step : steps)
      loops.adamw(dense.p.data(), dense.m.data(), dense.v.data(), zeros.data(), nullptr, 0, kRow, step);
    loops.adamw_replay(lazy.p.data(), lazy.m.data(), lazy.v.data(), nullptr, kRow, steps.data(),
                       static_cast<int64_t>(steps.size()));
    ASSERT_TRUE(dense == lazy) << isa << ", " << what;
  }
}

TEST(AdamwReplay, EqualsDenseStepsAcrossMagnitudes) {
  constexpr AdamOptions kOptions[] = {{.weight_decay = 0.01},
                                      {},
                                      {.beta1 = 0.95, .beta2 = 0.5, .eps = 1e-6, .weight_decay = 0.1},
                                      {.beta1 = 0.0, .beta2 = 0.99, .eps = 1e-20}};
  uint64_t stream = 0;
  for (const AdamOptions& options : kOptions) {
    const std::vector<AdamStep> steps = schedule(options, 1, 500);
    for (const int p : {-140, -100, -80, -10, 3})
      for (const int m : {-145, -100, -30, -8, 20})
        for (const int v : {-140, -60, -20, 10})
          expect_equal_to_dense(row_near(p, m, v, stream++), steps,
                                "p 2^" + std::to_string(p) + " m 2^" + std::to_string(m) + " v 2^" +
                                    std::to_string(v) + " beta1 " + std::to_string(options.beta1));
  }
}

TEST(AdamwReplay, EqualsDenseStepsForSpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<AdamStep> steps = schedule({.weight_decay = 0.1}, 1000, 200);
  for (const float p : {0.0f, -0.0f, 1.0f, kInfinity, kNan})
    for (const float m : {0.0f, -0.0f, 1e-30f, 1e30f, kInfinity, kNan})
      for (const float v : {0.0f, 1e-12f, kInfinity, kNan})
        expect_equal_to_dense(
            {std::vector<float>(kRow, p), std::vector<float>(kRow, m), std::vector<float>(kRow, v)}, steps,
            std::to_string(p) + " " + std::to_string(m) + " " + std::to_string(v));
}

TEST(AdamwReplay, EqualsDenseStepsOverThousandsOfSteps) {
  expect_equal_to_dense(row_near(-5, -10, -20, 1), schedule({.weight_decay = 0.01}, 50, 6000), "6000 steps");
}

}  // namespace
}  // namespace lockstep::cpu
