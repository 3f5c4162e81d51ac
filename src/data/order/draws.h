// Draws: a short sequence of random values for one thing (a row, a card), as a function of (seed, stream,
// index) alone.
//
// Where base/philox.h answers for any index, this walks forward and uses every word of a block.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>

#include "base/philox.h"
#include "base/portable_math.h"

namespace lockstep {

class Draws {
 public:
  // Up to 2^32 blocks of 4 words for each (stream, index).
  Draws(uint64_t seed, uint32_t stream, uint64_t index)
      : counter_{0, static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), stream},
        key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}

  uint32_t bits() {
    if (used_ == 4) {
      words_ = philox4x32(counter_, key_);
      counter_[0] += 1;
      used_ = 0;
    }
    return words_[used_++];
  }
  // In (0, 1).
  double uniform() { return (bits() + 0.5) * 0x1p-32; }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  // In [0, count); count below 2^32.
  uint32_t below(uint64_t count) { return static_cast<uint32_t>((bits() * count) >> 32); }
  bool chance(double p) { return uniform() < p; }
  double normal() {
    const double radius = std::sqrt(-2.0 * portable_log(uniform()));
    return radius * portable_sin_cos(bits()).cos;
  }
  double exponential() { return -portable_log(uniform()); }

 private:
  std::array<uint32_t, 4> counter_;
  PhiloxKey key_;
  std::array<uint32_t, 4> words_{};
  uint32_t used_ = 4;
};

}  // namespace lockstep
