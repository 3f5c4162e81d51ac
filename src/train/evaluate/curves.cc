#include "train/evaluate/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace lockstep {
namespace {

double share(int64_t part, int64_t whole) {
  return whole == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

ThresholdCurve::ThresholdCurve(std::vector<ScoredLabel> samples) {
  // A NaN is never at a threshold; it would also break the order.
  std::erase_if(samples, [&](const ScoredLabel& sample) {
    if (std::isnan(sample.score)) (sample.positive ? positives_ : negatives_) += 1;
    return std::isnan(sample.score);
  });
  std::sort(samples.begin(), samples.end(),
            [](const ScoredLabel& a, const ScoredLabel& b) { return a.score > b.score; });
  ThresholdPoint point;
  for (size_t i = 0; i < samples.size(); ++i) {
    point.score = samples[i].score;
    (samples[i].positive ? point.true_positive : point.false_positive) += 1;
    if (i + 1 == samples.size() || samples[i + 1].score != samples[i].score) points_.push_back(point);
  }
  positives_ += point.true_positive;
  negatives_ += point.false_positive;
}

std::vector<ThresholdPoint> ThresholdCurve::some(size_t most) const {
  LOCKSTEP_CHECK(most >= 2, "{} points", most);
  if (points_.size() <= most) return points_;
  std::vector<ThresholdPoint> chosen;
  for (size_t i = 0; i < most; ++i) chosen.push_back(points_[i * (points_.size() - 1) / (most - 1)]);
  return chosen;
}

double ThresholdCurve::false_positive_rate(const ThresholdPoint& point) const {
  return share(point.false_positive, negatives_);
}

double ThresholdCurve::recall(const ThresholdPoint& point) const {
  return share(point.true_positive, positives_);
}

double ThresholdCurve::precision(const ThresholdPoint& point) {
  return share(point.true_positive, point.true_positive + point.false_positive);
}

double ThresholdCurve::average_precision() const {
  if (positives_ == 0) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  int64_t before = 0;
  for (const ThresholdPoint& point : points_) {
    if (point.true_positive > before)
      sum += static_cast<double>(point.true_positive - before) * precision(point);
    before = point.true_positive;
  }
  return sum / static_cast<double>(positives_);
}

Calibration calibration_of(std::span<const double> probabilities, const std::vector<bool>& happened,
                           int bins) {
  LOCKSTEP_CHECK(probabilities.size() == happened.size() && bins >= 1, "{} probabilities, {} outcomes",
                 probabilities.size(), happened.size());
  Calibration calibration;
  for (int bin = 0; bin < bins; ++bin)
    calibration.bins.push_back({static_cast<double>(bin) / bins, static_cast<double>(bin + 1) / bins});
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (std::isnan(probabilities[i])) continue;
    const int place = std::clamp(static_cast<int>(probabilities[i] * bins), 0, bins - 1);
    CalibrationBin& bin = calibration.bins[static_cast<size_t>(place)];
    bin.count += 1;
    bin.predicted += probabilities[i];
    bin.observed += happened[i] ? 1 : 0;
  }
  int64_t all = 0;
  for (CalibrationBin& bin : calibration.bins) {
    if (bin.count == 0) continue;
    all += bin.count;
    calibration.expected_error += std::fabs(bin.predicted - bin.observed);
    bin.predicted /= static_cast<double>(bin.count);
    bin.observed /= static_cast<double>(bin.count);
  }
  if (all > 0) calibration.expected_error /= static_cast<double>(all);
  return calibration;
}

void ConfusionMatrix::add(int64_t truth, int64_t predicted, int64_t count) {
  LOCKSTEP_CHECK(truth >= 0 && truth < classes_ && predicted >= 0 && predicted < classes_,
                 "class {} taken for {}, of {}", truth, predicted, classes_);
  counts_[static_cast<size_t>(truth * classes_ + predicted)] += count;
}

}  // namespace lockstep
