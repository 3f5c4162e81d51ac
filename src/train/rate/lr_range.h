// LrRange: a learning-rate range test (Smith, arXiv 1506.01186; the exponential form that fastai made
// common).
//
// Every step has a higher rate than the one before. While the rate is too low the loss hardly moves, then it
// falls, then training breaks. From the course of the loss come two rates: the one at which it fell fastest,
// and a tenth of the one at which it was least. docs/scaling.md says how far to trust them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct LrRangeSettings {
  double from = 1e-7, to = 10;
  int64_t steps = 100;
};

struct LrRangePoint {
  double lr = 0;
  double loss = 0;
  double smooth = 0;  // the mean of the losses so far, older ones counting less
};

struct LrRangeAdvice {
  double steepest = 0;  // the rate where the loss fell fastest
  double least = 0;     // the rate where the smooth loss was least
  bool open = false;    // the loss was still falling at the highest rate: higher ones may be better

  // The smaller of the steepest and a tenth of the least: a whole run is longer than the test.
  double peak() const;
};

class LrRange {
 public:
  // Throws UserError if the range is empty or the steps are too few to see anything.
  explicit LrRange(const LrRangeSettings& settings);

  double lr(int64_t step) const;  // steps count from 1
  // The loss of the next step. False: the test is over.
  bool add(double loss);

  const LrRangeSettings& settings() const { return settings_; }
  const std::vector<LrRangePoint>& points() const { return points_; }
  double least_loss() const { return least_; }  // of the smooth ones
  // Why it ended before the last step; empty if it did not.
  const std::string& reason() const { return reason_; }
  // Nothing if the loss did not fall.
  std::optional<LrRangeAdvice> advice() const;

 private:
  size_t least_point() const;

  LrRangeSettings settings_;
  std::vector<LrRangePoint> points_;
  double sum_ = 0, weight_ = 0, least_ = 0;
  std::string reason_;
};

}  // namespace lockstep
