// What the scores of an evaluation look like beyond one number: curves over all thresholds, how well
// probabilities agree with what happened, and which class is taken for which.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

struct ScoredLabel {
  float score = 0;  // a logit: larger means more likely positive
  bool positive = false;
};

// At one threshold: a sample is predicted positive if its score is at least that.
struct ThresholdPoint {
  float score = 0;
  int64_t true_positive = 0, false_positive = 0;

  bool operator==(const ThresholdPoint&) const = default;
};

// The points of all thresholds from the highest down, one for each distinct score.
class ThresholdCurve {
 public:
  explicit ThresholdCurve(std::vector<ScoredLabel> samples);

  int64_t positives() const { return positives_; }
  int64_t negatives() const { return negatives_; }
  const std::vector<ThresholdPoint>& points() const { return points_; }
  // At most so many of them, evenly over their order, with the first and the last.
  std::vector<ThresholdPoint> some(size_t most) const;

  double false_positive_rate(const ThresholdPoint& point) const;
  double recall(const ThresholdPoint& point) const;
  static double precision(const ThresholdPoint& point);
  // The area under precision over recall, as average precision: each step of recall counts with the precision
  // that it reaches. NaN without positives.
  double average_precision() const;

 private:
  std::vector<ThresholdPoint> points_;
  int64_t positives_ = 0, negatives_ = 0;
};

// Samples by the probability that was predicted for them, in bins of equal width.
struct CalibrationBin {
  double from = 0, to = 0;
  int64_t count = 0;
  double predicted = 0;  // mean probability; 0 in a bin without samples
  double observed = 0;   // share that was positive
};

struct Calibration {
  std::vector<CalibrationBin> bins;
  double expected_error = 0;  // mean over samples of |predicted - observed| of their bin
};

// `probabilities[i]` was predicted for what `happened[i]` says. Sums are taken in the order of the samples.
Calibration calibration_of(std::span<const double> probabilities, const std::vector<bool>& happened,
                           int bins = 10);

// How often class t was taken for class p.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int64_t classes)
      : classes_(classes), counts_(static_cast<size_t>(classes * classes)) {}

  void add(int64_t truth, int64_t predicted, int64_t count = 1);
  int64_t classes() const { return classes_; }
  int64_t at(int64_t truth, int64_t predicted) const {
    return counts_[static_cast<size_t>(truth * classes_ + predicted)];
  }

 private:
  int64_t classes_;
  std::vector<int64_t> counts_;
};

}  // namespace lockstep
