// How well an order mixes: figures over a stretch of positions, beside what a random order would give.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

struct ShuffleReport {
  int64_t positions = 0;
  // By lag, from 1 on: Pearson's correlation of record numbers, and the share of pairs from one block.
  std::vector<double> correlation;
  std::vector<double> same_block;
  // The mean of |record - place in the epoch| over the number of records: 1/3 where nothing is known.
  double displacement = 0;
  // Different blocks among the samples of a step; expected_blocks is that of a random order.
  double mean_blocks = 0;
  double expected_blocks = 0;
  int64_t least_blocks = 0, most_blocks = 0;

  // The lag (from 1 on) of the largest correlation, up or down.
  int64_t worst_lag() const;
};

struct ShuffledStretch {
  std::span<const int64_t> records;  // by position
  int64_t first = 0;                 // place of the first in its epoch; all are of one epoch
  int64_t all = 0;                   // records of an epoch
  int64_t block = 1;                 // records that are read at once
  int64_t step = 1;                  // samples of a step
};

ShuffleReport report_shuffle(const ShuffledStretch& stretch, int64_t lags = 64);

// ExactlyOnce: counts which of N records were read, with one bit each, to prove that an epoch leaves none out
// and repeats none.
class ExactlyOnce {
 public:
  explicit ExactlyOnce(int64_t records);

  // Throws InternalError for a record that there is not.
  void add(int64_t record);

  int64_t repeated() const { return repeated_; }  // reads of a record that had been read
  int64_t missing() const { return missing_; }    // records that were not read yet
  bool holds() const { return repeated_ == 0 && missing_ == 0; }

 private:
  int64_t records_;
  int64_t repeated_ = 0;
  int64_t missing_;
  std::vector<uint64_t> read_;
};

}  // namespace lockstep
