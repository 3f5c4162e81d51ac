#include "train/rate/schedule.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/number_text.h"
#include "base/portable_math.h"

namespace lockstep {
namespace {

// What transformers takes for the time scale of inverse_sqrt without a warm-up.
constexpr int64_t kTimescale = 10'000;

// sin^2(pi x / 2) for x in [0, 1]: (1 + cos(pi (1 - x))) / 2, without the cancellation at small x.
double squared_sine(double x) {
  if (x > 0.5) return 1.0 - squared_sine(1.0 - x);
  const double angle = x * 1.5707963267948966;
  const double angle2 = angle * angle;
  double series = 1.0;
  for (int k = 16; k >= 2; k -= 2) series = 1.0 - series * (angle2 * (1.0 / (k * (k + 1))));
  return angle * series * (angle * series);
}

// x^power for x in [0, 1]. Small whole powers by multiplication: the common ones lose nothing.
double power_of(double x, double power) {
  if (x == 0.0 || x == 1.0) return x;
  if (power == std::floor(power) && power <= 8) {
    double product = x;
    for (int i = 1; i < static_cast<int>(power); ++i) product *= x;
    return product;
  }
  return portable_exp(power * portable_log(x));
}

double peak_over_base(const ScheduleSettings& s) {
  const double ratio = static_cast<double>(s.global_batch) / static_cast<double>(s.base_batch);
  switch (s.scaling) {
    case LrScaling::kNone: return 1;
    case LrScaling::kLinear: return ratio;
    case LrScaling::kSqrt: return std::sqrt(ratio);
  }
  return 1;
}

bool falls(LrDecay decay) { return decay != LrDecay::kConstant && decay != LrDecay::kInverseSqrt; }

void check(const ScheduleSettings& s) {
  LOCKSTEP_CHECK(s.base >= 0 && s.min >= 0, "base {} and min {}", s.base, s.min);
  LOCKSTEP_CHECK(s.global_batch > 0 && s.base_batch > 0, "batch {}, base_batch {}", s.global_batch,
                 s.base_batch);
  LOCKSTEP_CHECK(s.warmup_steps >= 0 && s.decay_steps >= 0, "warm-up {}, decay {}", s.warmup_steps,
                 s.decay_steps);
  LOCKSTEP_CHECK(s.power > 0, "power {}", s.power);
  if (!falls(s.decay)) return;
  LOCKSTEP_CHECK(s.total_steps >= std::max<int64_t>(1, s.warmup_steps), "{} steps with a warm-up of {}",
                 s.total_steps, s.warmup_steps);
}

}  // namespace

Schedule::Schedule(const ScheduleSettings& settings) : settings_(settings) {
  ScheduleSettings& s = settings_;
  if (s.base_batch == 0) s.base_batch = s.global_batch;
  check(s);
  peak_ = s.base * peak_over_base(s);
  fall_begin_ = fall_end_ = s.warmup_steps;
  if (!falls(s.decay)) return;
  const int64_t room = s.total_steps - s.warmup_steps;
  if (s.decay == LrDecay::kWsd) {
    if (s.decay_steps == 0) s.decay_steps = std::min(room, (s.total_steps + 9) / 10);
    LOCKSTEP_CHECK(s.decay_steps <= room, "a fall of {} steps with {} left after the warm-up", s.decay_steps,
                   room);
    fall_end_ = s.total_steps;
    fall_begin_ = fall_end_ - s.decay_steps;
  } else {
    if (s.decay_steps == 0) s.decay_steps = room;
    fall_end_ = fall_begin_ + s.decay_steps;
  }
}

double Schedule::base_for(double peak) const { return peak / peak_over_base(settings_); }

double Schedule::share(int64_t step) const {
  const ScheduleSettings& s = settings_;
  if (s.decay == LrDecay::kConstant) return 1.0;
  if (s.decay == LrDecay::kInverseSqrt) {
    const int64_t timescale = s.warmup_steps > 0 ? s.warmup_steps : kTimescale;
    const int64_t since = step + timescale - s.warmup_steps;
    return 1.0 / std::sqrt(static_cast<double>(since) / static_cast<double>(timescale));
  }
  if (step <= fall_begin_) return 1.0;
  if (step >= fall_end_) return 0.0;
  const double left = static_cast<double>(fall_end_ - step) / static_cast<double>(fall_end_ - fall_begin_);
  switch (s.decay) {
    case LrDecay::kCosine: return squared_sine(left);
    case LrDecay::kLinear: return left;
    default: return power_of(left, s.power);
  }
}

double Schedule::lr(int64_t step) const {
  LOCKSTEP_CHECK(step >= 1, "step {}", step);
  const ScheduleSettings& s = settings_;
  if (step <= s.warmup_steps)
    return peak_ * (static_cast<double>(step) / static_cast<double>(s.warmup_steps));
  if (s.decay == LrDecay::kInverseSqrt) return std::max(std::min(s.min, peak_), peak_ * share(step));
  const double part = share(step);
  // The peak itself, where adding min to what is above it may round.
  return part == 1.0 ? peak_ : s.min + (peak_ - s.min) * part;
}

std::string Schedule::reason() const {
  const ScheduleSettings& s = settings_;
  const std::string base = short_number(s.base), peak = short_number(peak_);
  if (s.global_batch == s.base_batch)
    return fmt::format("{}: the batch is base_batch, {}", peak, s.base_batch);
  switch (s.scaling) {
    case LrScaling::kLinear:
      return fmt::format("linear: {} x {}/{} = {} (Goyal et al., arXiv 1706.02677)", base, s.global_batch,
                         s.base_batch, peak);
    case LrScaling::kSqrt:
      return fmt::format("sqrt: {} x sqrt({}/{}) = {} (Malladi et al., arXiv 2205.10287)", base,
                         s.global_batch, s.base_batch, peak);
    case LrScaling::kNone: break;
  }
  return fmt::format("none: {} at batch {} as at base_batch {}", peak, s.global_batch, s.base_batch);
}

double momentum_correction(double previous_lr, double lr) {
  // After a step with rate 0 the buffer holds nothing worth scaling.
  return previous_lr > 0 ? lr / previous_lr : 1.0;
}

}  // namespace lockstep
