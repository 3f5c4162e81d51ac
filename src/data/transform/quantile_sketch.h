// QuantileSketch: where the quantiles of any number of values lie, in bounded memory and with the same bits
// for every order in which values and sketches are added.
//
// Values are counted in cells of 4096 to a power of two, and a cell answers with its smallest value: exact
// for whole numbers below 8192 and wherever a cell holds one value, otherwise too small by less than one part
// in 4096. A cell is there once it has a value, so data that spans 40 powers of two takes 8 MB at most.
#pragma once
#include <cstdint>
#include <map>

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

}  // namespace lockstep
