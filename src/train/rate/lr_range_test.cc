#include "train/rate/lr_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace lockstep {
namespace {

// Gradient descent on x^2 / 2 from x = 1: a rate above 2 takes x farther away.
LrRange descend(const LrRangeSettings& settings) {
  LrRange range(settings);
  double x = 1;
  for (int64_t step = 1;; ++step) {
    if (!range.add(0.1 + x * x / 2)) return range;
    x -= range.lr(step) * x;
  }
}

TEST(LrRange, RatesRiseEvenlyOnALogarithmicAxis) {
  const LrRange range({.from = 1e-4, .to = 1, .steps = 41});
  EXPECT_EQ(range.lr(1), 1e-4);
  EXPECT_NEAR(range.lr(11), 1e-3, 1e-15);
  EXPECT_NEAR(range.lr(31), 1e-1, 1e-13);
  EXPECT_NEAR(range.lr(41), 1, 1e-12);
}

TEST(LrRange, AdvisesARateThatLearnsAndDoesNotBreak) {
  const LrRange range = descend({.from = 1e-5, .to = 100, .steps = 100});
  EXPECT_EQ(range.reason(), "the loss rose to 4 times its least");
  EXPECT_LT(range.points().size(), 100u);
  const auto advice = range.advice();
  ASSERT_TRUE(advice);
  EXPECT_FALSE(advice->open);
  // Of its fall the sum of the rates so far decides: x has half its value where that is 0.7, at a rate of
  // 0.1.
  EXPECT_GT(advice->steepest, 0.03);
  EXPECT_LT(advice->steepest, 0.3);
  EXPECT_GT(advice->least, advice->steepest);
  EXPECT_LT(advice->peak(), 2);
  EXPECT_EQ(advice->peak(), std::min(advice->steepest, advice->least / 10));
}

// A fall, a spike in the middle of it, and a minimum.
TEST(LrRange, ComingBackFromASpikeIsNoProgress) {
  LrRange range({.from = 1e-4, .to = 1, .steps = 41});
  for (int64_t step = 1; step <= 41; ++step) {
    const bool spike = step >= 26 && step <= 28;
    const double loss = step <= 10 ? 5 : step <= 20 ? 5 - 0.2 * static_cast<double>(step - 10) : 3;
    range.add(spike ? 9 : loss - 1e-3 * static_cast<double>(step));
  }
  ASSERT_TRUE(range.advice());
  EXPECT_GE(range.advice()->steepest, range.lr(10));
  EXPECT_LE(range.advice()->steepest, range.lr(20));
}

TEST(LrRange, SaysThatHigherRatesMayBeBetter) {
  const auto advice = descend({.from = 1e-5, .to = 0.05, .steps = 100}).advice();
  ASSERT_TRUE(advice);
  EXPECT_TRUE(advice->open);
}

TEST(LrRange, AdvisesNothingWhereNothingFell) {
  EXPECT_FALSE(descend({.from = 1e-9, .to = 1e-7, .steps = 50}).advice());
  EXPECT_FALSE(LrRange({}).advice());
}

TEST(LrRange, ALossThatIsNotFiniteEndsIt) {
  LrRange range({});
  EXPECT_TRUE(range.add(2.0));
  EXPECT_FALSE(range.add(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(range.points().size(), 1u);
  EXPECT_EQ(range.reason(), "the loss was no longer finite");
}

TEST(LrRange, TheSmoothLossBeginsWithoutADebt) {
  LrRange range({});
  for (int i = 0; i < 5; ++i) range.add(3.0);
  for (const LrRangePoint& point : range.points()) EXPECT_NEAR(point.smooth, 3.0, 1e-12);
}

TEST(LrRange, RefusesRangesThatAreNone) {
  EXPECT_THROW(LrRange({.from = 0}), UserError);
  EXPECT_THROW(LrRange({.from = 1, .to = 1}), UserError);
  EXPECT_THROW(LrRange({.to = std::numeric_limits<double>::infinity()}), UserError);
  EXPECT_THROW(LrRange({.steps = 5}), UserError);
}

}  // namespace
}  // namespace lockstep
