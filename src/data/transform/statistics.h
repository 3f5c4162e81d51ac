// QuantileSketch: where the quantiles of any number of values lie, in bounded memory and with the same bits
// for every order in which values and sketches are added.
//
// Values are counted in cells of 4096 to a power of two, and a cell answers with its smallest value: exact
// for whole numbers below 8192 and wherever a cell holds one value, otherwise too small by less than one part
// in 4096. A cell is there once it has a value, so data that spans 40 powers of two takes 8 MB at most.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <span>

namespace lockstep {

class QuantileSketch {
 public:
  void add(double value);  // not NaN
  void merge(const QuantileSketch& next);

  int64_t count() const { return count_; }
  double smallest() const { return cells_.begin()->second.smallest; }  // count() > 0
  // About the value that `rank` values come before; 0 <= rank < count().
  double at(int64_t rank) const;

 private:
  struct Cell {
    int64_t count = 0;
    double smallest = 0;
  };
  std::map<uint32_t, Cell> cells_;
  int64_t count_ = 0;
};

// Moments: count, mean, and sums of squared and cubed deviations of numbers, in one pass over blocks.
//
// A block's moments are taken in two passes over its values; blocks are joined by the formulas of Chan and of
// Pébay, which stay accurate where sums of powers would cancel. Joined in a fixed order the result has fixed
// bits.
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
