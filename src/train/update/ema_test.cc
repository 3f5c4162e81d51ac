#include "train/update/ema.h"

#include <gtest/gtest.h>

#include "runtime/compile.h"
#include "runtime/flat.h"

namespace lockstep {
namespace {

constexpr int64_t kElements = 3 * kFlatBlock;

FlatLayout layout_of_three_blocks() {
  FlatLayout layout;
  layout.add("a", {1500});
  layout.add("b", {7, 11});
  return layout;
}

// `steps` averages over weights that grow by 1/8 a step, one table of 5 x 3 rows beside them.
struct Averaged {
  std::vector<float> average, table_average;
};
Averaged run(int threads, double decay, int steps, float growth) {
  const auto backend = make_cpu_backend(threads);
  PassOptions passes;
  passes.disabled = {"autodiff"};
  const FlatLayout layout = layout_of_three_blocks();
  EXPECT_EQ(layout.numel(), kElements);
  const auto ema =
      compile(build_ema_update({layout.dtype(), {layout.numel()}}, {{"table", "ids", {5, 3}, 2}}, decay),
              *backend, passes);
  EXPECT_EQ(ema->plan().steps.size(), 2u) << "one fused kernel per buffer";
  std::vector<float> params(kElements), table(15, 2.0f);
  for (size_t i = 0; i < params.size(); ++i) params[i] = 0.37f * static_cast<float>(i % 101) - 9.0f;
  Averaged result{params, table};
  ema->bind("params", params.data());
  ema->bind("average", result.average.data());
  ema->bind("table", table.data());
  ema->bind(average_name("table"), result.table_average.data());
  for (int step = 0; step < steps; ++step) {
    for (float& p : params) p += growth;
    for (float& p : table) p += growth;
    ema->run();
  }
  return result;
}

TEST(Ema, FollowsItsRecurrence) {
  const Averaged result = run(1, 0.9, 20, 0.125f);
  double expected = 2.0, weight = 2.0;
  for (int step = 0; step < 20; ++step) {
    weight += 0.125;
    expected = 0.9 * expected + 0.1 * weight;
  }
  for (const float value : result.table_average) EXPECT_NEAR(value, expected, 1e-6);
  for (size_t i = 0; i < result.average.size(); ++i)
    EXPECT_NEAR(result.average[i], 0.37 * static_cast<double>(i % 101) - 9.0 + (expected - 2.0), 2e-5);
}

TEST(Ema, WeightsAtRestStayTheirAverage) {
  const Averaged result = run(1, 0.9999, 50, 0.0f);
  for (const float value : result.table_average) EXPECT_EQ(value, 2.0f);
  for (size_t i = 0; i < result.average.size(); ++i)
    EXPECT_EQ(result.average[i], 0.37f * static_cast<float>(i % 101) - 9.0f);
}

TEST(Ema, ThreadsChangeNoBit) { EXPECT_EQ(run(1, 0.99, 5, 0.3f).average, run(3, 0.99, 5, 0.3f).average); }

}  // namespace
}  // namespace lockstep
