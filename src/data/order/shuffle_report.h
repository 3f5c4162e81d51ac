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

}  // namespace lockstep
