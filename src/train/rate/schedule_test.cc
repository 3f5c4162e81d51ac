#include "train/rate/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

namespace lockstep {
namespace {

ScheduleSettings settings_of(LrDecay kind, int64_t warmup, int64_t total) {
  ScheduleSettings settings;
  settings.base = 3e-4;
  settings.decay = kind;
  settings.warmup_steps = warmup;
  settings.total_steps = total;
  return settings;
}

// Each step of the schedule against `lambda`, transformers' factor at that step, written down from its
// formula.
void expect_follows(const ScheduleSettings& settings, const std::function<double(double k)>& lambda) {
  const Schedule schedule(settings);
  for (int64_t step = 1; step <= settings.total_steps + 5; ++step) {
    const double expected = settings.base * lambda(static_cast<double>(step));
    EXPECT_NEAR(schedule.lr(step), expected, 1e-15 * settings.base) << "step " << step;
  }
}

TEST(Schedule, PeakFollowsTheBatch) {
  ScheduleSettings settings;
  settings.base = 1e-4;
  settings.base_batch = 32;
  settings.global_batch = 256;
  settings.scaling = LrScaling::kLinear;
  EXPECT_DOUBLE_EQ(Schedule(settings).peak(), 8e-4);
  EXPECT_EQ(Schedule(settings).reason(), "linear: 1e-4 x 256/32 = 8e-4 (Goyal et al., arXiv 1706.02677)");
  settings.scaling = LrScaling::kSqrt;
  EXPECT_NEAR(Schedule(settings).peak(), 2.83e-4, 0.005e-4);
  EXPECT_DOUBLE_EQ(Schedule(settings).peak(), 1e-4 * std::sqrt(8.0));
  EXPECT_EQ(Schedule(settings).reason(),
            "sqrt: 1e-4 x sqrt(256/32) = 2.83e-4 (Malladi et al., arXiv 2205.10287)");
  settings.scaling = LrScaling::kNone;
  EXPECT_EQ(Schedule(settings).peak(), 1e-4);
  EXPECT_EQ(Schedule(settings).reason(), "none: 1e-4 at batch 256 as at base_batch 32");
  settings.base_batch = 0;
  EXPECT_EQ(Schedule(settings).reason(), "1e-4: the batch is base_batch, 256");
}

TEST(Schedule, ASmallerBatchLowersThePeak) {
  ScheduleSettings settings;
  settings.base = 1e-3;
  settings.base_batch = 64;
  settings.global_batch = 16;
  settings.scaling = LrScaling::kLinear;
  EXPECT_EQ(Schedule(settings).peak(), 2.5e-4);
  settings.scaling = LrScaling::kSqrt;
  EXPECT_EQ(Schedule(settings).peak(), 5e-4);
}

TEST(Schedule, WarmUpStepHasItsShareOfThePeak) {
  for (const LrDecay kind : {LrDecay::kConstant, LrDecay::kLinear, LrDecay::kCosine, LrDecay::kPolynomial,
                             LrDecay::kInverseSqrt, LrDecay::kWsd}) {
    const Schedule schedule(settings_of(kind, 7, 20));
    for (int64_t step = 1; step <= 7; ++step)
      EXPECT_EQ(schedule.lr(step), 3e-4 * (static_cast<double>(step) / 7.0)) << "step " << step;
    EXPECT_EQ(schedule.lr(7), schedule.peak());
  }
}

TEST(Schedule, ConstantStays) {
  expect_follows(settings_of(LrDecay::kConstant, 10, 100), [](double k) { return std::min(1.0, k / 10); });
  expect_follows(settings_of(LrDecay::kConstant, 0, 100), [](double) { return 1.0; });
}

TEST(Schedule, LinearIsLinearScheduleWithWarmup) {
  for (const int64_t warmup : {0, 1, 10, 99}) {
    const double w = static_cast<double>(warmup);
    expect_follows(settings_of(LrDecay::kLinear, warmup, 100), [w](double k) {
      return k < w ? k / std::max(1.0, w) : std::max(0.0, (100 - k) / std::max(1.0, 100 - w));
    });
  }
}

TEST(Schedule, CosineIsCosineScheduleWithWarmup) {
  for (const int64_t warmup : {0, 10, 99}) {
    const double w = static_cast<double>(warmup);
    expect_follows(settings_of(LrDecay::kCosine, warmup, 100), [w](double k) {
      if (k < w) return k / w;
      const double progress = std::min(1.0, (k - w) / std::max(1.0, 100 - w));
      return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    });
  }
}

TEST(Schedule, CosineEndsAtMin) {
  ScheduleSettings settings = settings_of(LrDecay::kCosine, 10, 100);
  settings.min = 0.1 * settings.base;
  expect_follows(settings, [](double k) {
    if (k < 10) return k / 10;
    const double progress = std::min(1.0, (k - 10) / 90);
    return 0.5 * (1.0 + std::cos(std::numbers::pi * progress)) * 0.9 + 0.1;
  });
}

TEST(Schedule, CosineKeepsItsDigitsAtTheEnd) {
  const Schedule schedule(settings_of(LrDecay::kCosine, 0, 1'000'000));
  const double angle = std::numbers::pi / 2e6;
  EXPECT_NEAR(schedule.lr(999'999) / (3e-4 * angle * angle), 1.0, 1e-11);
}

TEST(Schedule, PolynomialIsPolynomialDecayWithWarmup) {
  for (const double power : {1.0, 2.0, 3.0, 0.5, 1.7}) {
    ScheduleSettings settings = settings_of(LrDecay::kPolynomial, 10, 100);
    settings.min = 1e-7;
    settings.power = power;
    expect_follows(settings, [=](double k) {
      if (k < 10) return k / 10;
      if (k > 100) return 1e-7 / 3e-4;
      return ((3e-4 - 1e-7) * std::pow(1 - (k - 10) / 90, power) + 1e-7) / 3e-4;
    });
  }
}

TEST(Schedule, InverseSqrtIsInverseSqrtSchedule) {
  expect_follows(settings_of(LrDecay::kInverseSqrt, 10, 100),
                 [](double k) { return k < 10 ? k / 10 : 1.0 / std::sqrt(k / 10); });
  expect_follows(settings_of(LrDecay::kInverseSqrt, 0, 100),
                 [](double k) { return 1.0 / std::sqrt((k + 10'000) / 10'000); });
}

TEST(Schedule, InverseSqrtStopsAtMin) {
  ScheduleSettings settings = settings_of(LrDecay::kInverseSqrt, 1, 100);
  settings.min = 1e-4;
  const Schedule schedule(settings);
  EXPECT_DOUBLE_EQ(schedule.lr(4), 1.5e-4);
  EXPECT_EQ(schedule.lr(10), 1e-4);
}

TEST(Schedule, WsdIsWsdScheduleWithLinearDecay) {
  ScheduleSettings settings = settings_of(LrDecay::kWsd, 10, 100);
  settings.decay_steps = 20;
  settings.min = 0.25 * settings.base;
  expect_follows(settings, [](double k) {
    if (k < 10) return k / 10;
    if (k < 80) return 1.0;
    return k < 100 ? (1 - (k - 80) / 20) * 0.75 + 0.25 : 0.25;
  });
  settings.decay_steps = 0;
  EXPECT_EQ(Schedule(settings).fall_begin(), 90);
  EXPECT_EQ(Schedule(settings).fall_end(), 100);
}

TEST(Schedule, AShorterFallStaysAtMin) {
  ScheduleSettings settings = settings_of(LrDecay::kLinear, 10, 100);
  settings.decay_steps = 40;
  settings.min = 1e-5;
  const Schedule schedule(settings);
  EXPECT_NEAR(schedule.lr(30), 1e-5 + (3e-4 - 1e-5) / 2, 1e-18);
  EXPECT_EQ(schedule.lr(50), 1e-5);
  EXPECT_EQ(schedule.lr(100), 1e-5);
}

TEST(Schedule, ARunThatOnlyWarmsUpEndsAtThePeak) {
  for (const LrDecay kind : {LrDecay::kLinear, LrDecay::kCosine, LrDecay::kWsd})
    EXPECT_EQ(Schedule(settings_of(kind, 20, 20)).lr(20), 3e-4);
}

// u = m u + g; p -= lr u, which is the sgd op's, and v = m c v + lr g; p -= v are the same walk.
TEST(Schedule, MomentumCorrectionMakesBothFormsEqual) {
  const Schedule schedule(settings_of(LrDecay::kLinear, 8, 24));
  double p_rate_outside = 1, u = 0, p_rate_inside = 1, v = 0;
  for (int64_t step = 1; step < 24; ++step) {
    const double lr = schedule.lr(step);
    u = 0.9 * u + p_rate_outside;
    p_rate_outside -= lr * u;
    const double correction = step == 1 ? 1.0 : momentum_correction(schedule.lr(step - 1), lr);
    v = 0.9 * correction * v + lr * p_rate_inside;
    p_rate_inside -= v;
    EXPECT_NEAR(p_rate_inside, p_rate_outside, 1e-15) << "step " << step;
  }
  EXPECT_EQ(momentum_correction(0.0, 1e-3), 1.0);
}

}  // namespace
}  // namespace lockstep
