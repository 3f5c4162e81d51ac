#include "train/rate/lr_range.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"

namespace lockstep {
namespace {

constexpr double kSmoothing = 0.9;  // what is left of a loss's weight one step later
constexpr double kBroken = 4;       // the smooth loss over its least: training broke
constexpr double kFall = 0.01;      // a fall by less than this share is none
constexpr int64_t kFewestSteps = 20;

// The least loss so far, at every point: coming back from a spike is no progress. Not of the smooth loss,
// which would move every fall to higher rates.
std::vector<double> lows_of(const std::vector<LrRangePoint>& points) {
  std::vector<double> lows;
  for (const LrRangePoint& point : points)
    lows.push_back(lows.empty() ? point.loss : std::min(lows.back(), point.loss));
  return lows;
}

// Of a straight line through the values around a point. Rates lie evenly on their logarithmic axis, so the
// number of a point will do for its place.
double slope(const std::vector<double>& values, size_t point, size_t reach) {
  const size_t first = point - std::min(point, reach);
  const size_t last = std::min(values.size() - 1, point + reach);
  const double middle = static_cast<double>(first + last) / 2;
  double rises = 0, squares = 0;
  for (size_t i = first; i <= last; ++i) {
    const double place = static_cast<double>(i) - middle;
    rises += place * values[i];
    squares += place * place;
  }
  return squares > 0 ? rises / squares : 0;
}

}  // namespace

double LrRangeAdvice::peak() const { return std::min(steepest, least / 10); }

LrRange::LrRange(const LrRangeSettings& settings) : settings_(settings) {
  if (!(settings.from > 0) || !(settings.to > settings.from) || !std::isfinite(settings.to))
    throw UserError("a range test from {} to {} has no range; use --from above 0 and --to above that",
                    settings.from, settings.to);
  if (settings.steps < kFewestSteps)
    throw UserError("a range test of {} steps shows nothing; use --steps {} or more", settings.steps,
                    kFewestSteps);
}

double LrRange::lr(int64_t step) const {
  const double share = static_cast<double>(step - 1) / static_cast<double>(settings_.steps - 1);
  return settings_.from * portable_exp(share * portable_log(settings_.to / settings_.from));
}

bool LrRange::add(double loss) {
  if (!std::isfinite(loss)) {
    reason_ = "the loss was no longer finite";
    return false;
  }
  sum_ = kSmoothing * sum_ + (1 - kSmoothing) * loss;
  weight_ = kSmoothing * weight_ + (1 - kSmoothing);
  const double smooth = sum_ / weight_;
  least_ = points_.empty() ? smooth : std::min(least_, smooth);
  points_.push_back({lr(static_cast<int64_t>(points_.size()) + 1), loss, smooth});
  if (smooth > kBroken * least_) reason_ = fmt::format("the loss rose to {} times its least", kBroken);
  return reason_.empty() && static_cast<int64_t>(points_.size()) < settings_.steps;
}

size_t LrRange::least_point() const {
  const auto less = [](const LrRangePoint& a, const LrRangePoint& b) { return a.smooth < b.smooth; };
  return static_cast<size_t>(std::min_element(points_.begin(), points_.end(), less) - points_.begin());
}

std::optional<LrRangeAdvice> LrRange::advice() const {
  if (points_.empty() || least_ > points_.front().smooth * (1 - kFall)) return std::nullopt;
  const std::vector<double> lows = lows_of(points_);
  const size_t reach = static_cast<size_t>(std::max<int64_t>(3, settings_.steps / 20));
  const size_t least = least_point();
  size_t steepest = 0;
  for (size_t i = 1; i <= least; ++i)
    if (slope(lows, i, reach) < slope(lows, steepest, reach)) steepest = i;
  return LrRangeAdvice{points_[steepest].lr, points_[least].lr,
                       least + 1 == points_.size() && reason_.empty()};
}

}  // namespace lockstep
