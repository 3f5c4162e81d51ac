// What rope refuses, and its frequencies.
#include "ops/op_errors.h"
#include "ops/rope_frequencies.h"

namespace lockstep {
namespace {

using testing::expect_error;

TEST(Rope, RefusesWhatCannotTurn) {
  expect_error("x: f32[1,4,2,8]", "y = rope(x) {rotary_dim=7}", "it must be even, at least 2 and at most");
  expect_error("x: f32[1,4,2,8]", "y = rope(x) {frequencies=[1.0,0.5]}",
               "2 frequencies are given for 4 pairs");
  expect_error("x: f32[1,4,2,8], p: i32[4]", "y = rope(x, p)", "must be i32[1,4]");
  expect_error("x: f32[1,4,2,8]", "y = rope(x) {factor=0.0}", "it must be above 0");
}

TEST(Rope, FrequenciesArePowersOfTheBase) {
  const std::vector<float> f = rope_frequencies(10000.0, 4);
  EXPECT_EQ(f, (std::vector<float>{1.0f, 0.1f, 0.01f, 0.001f}));
  const std::vector<float> wide = rope_frequencies(500000.0, 64);
  EXPECT_NEAR(wide[32] * 707.1067811865476, 1.0, 1e-6);
}

}  // namespace
}  // namespace lockstep
