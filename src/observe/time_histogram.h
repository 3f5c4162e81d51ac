// TimeHistogram: percentiles of durations in constant memory, without sampling.
//
// Buckets are spaced so that each is 1 % wider than the one before; a percentile is the geometric middle of
// its bucket, within 0.5 % of the exact one, whatever the number of durations. Durations from 1 us to about
// 30 hours are told apart; those outside count as the nearest.
#pragma once
#include <cstdint>
#include <vector>

namespace lockstep {

class TimeHistogram {
 public:
  TimeHistogram();

  void add(double seconds);
  int64_t count() const { return count_; }
  // The smallest duration that at least this share (0 to 1) of all do not exceed; 0 without any.
  double percentile(double share) const;

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  double low_ = 0, high_ = 0;  // the extremes, which no percentile passes
};

}  // namespace lockstep
