// Philox: random numbers as a pure function of (seed, stream, index), with no state to advance.
//
// The seed is the key; the stream says what the numbers are for (a tensor, a layer's dropout at a step).
// Index i is word i % 4 of the block whose counter is i / 4. Every function gives the same bits on every
// machine and compiler: integers, IEEE double arithmetic in written order and square root only, never the C
// library's log or sin, whose last bit differs between versions.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "base/philox_constants.h"

namespace lockstep {

struct PhiloxKey {
  uint32_t k0, k1;
};

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, PhiloxKey key);

class Philox {
 public:
  Philox(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  uint32_t bits(uint64_t index) const { return block(index / 4)[index % 4]; }
  // In [0, 1), a multiple of 2^-24: every value is exact in a float.
  float uniform(uint64_t index) const;
  // Standard normal by Box-Muller over the pair of words (index & ~1, index | 1); at most 6.8 in magnitude.
  float normal(uint64_t index) const;
  // True with probability p, rounded to a multiple of 2^-32.
  bool bernoulli(uint64_t index, double p) const { return bits(index) < bernoulli_threshold(p); }
  // The number of 32-bit words that count as true: 0 for p <= 0 (and NaN), 2^32 for p >= 1.
  static uint64_t bernoulli_threshold(double p);

  // out[j] is the draw at index first + j, so a range may be filled in pieces, by anybody, in any order.
  void fill_normal(std::span<float> out, float mean, float std, uint64_t first = 0) const;
  // In [lo, hi), also where rounding would reach hi.
  void fill_uniform(std::span<float> out, float lo, float hi, uint64_t first = 0) const;

 private:
  std::array<uint32_t, 4> block(uint64_t counter) const;

  uint64_t seed_;
  uint64_t stream_;
};

// What the elements of a tensor begin with: element i is the draw at index i, so that whoever fills a part of
// it needs no other.
struct RandomFill {
  enum class Kind : uint8_t { kConstant, kNormal, kUniform };
  Kind kind = Kind::kConstant;
  float a = 0, b = 0;  // the constant; mean and deviation; lower and upper end
  uint64_t seed = 0, stream = 0;
  // Elements [zeros_begin, zeros_end) are 0 instead.
  int64_t zeros_begin = 0, zeros_end = 0;

  // Elements [first, first + values.size()).
  void fill(int64_t first, std::span<float> values) const;
};

}  // namespace lockstep
