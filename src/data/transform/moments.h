// Moments: count, mean, and sums of squared and cubed deviations of numbers, in one pass over blocks.
//
// A block's moments are taken in two passes over its values; blocks are joined by the formulas of Chan and of
// Pébay, which stay accurate where sums of powers would cancel. Joined in a fixed order the result has fixed
// bits.
#pragma once
#include <cstdint>
#include <limits>
#include <span>

namespace lockstep {

struct Moments {
  int64_t count = 0;  // of values that are not NaN
  double mean = 0;
  double second = 0;  // sum of (x - mean)^2
  double third = 0;   // sum of (x - mean)^3
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();

  double deviation() const;
  double skewness() const;  // 0 where all values are equal
  void merge(const Moments& next);
};

Moments moments_of(std::span<const double> values);

}  // namespace lockstep
