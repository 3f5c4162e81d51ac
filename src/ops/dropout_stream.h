// Which random numbers a dropout draws: the definition that every backend and the interpreter share.
//
// rng = (seed, position), where position identifies step and microbatch; key tells the dropouts of one model
// apart. Element i (row-major) is dropped when Philox(seed, dropout_stream(key, position)).bernoulli(i, p).
// Kept elements are multiplied by 1 / (1 - p), rounded once to f32.
#pragma once
#include "ops/random_stream.h"

namespace lockstep {

// "drop", "out1" in ASCII: keeps these streams apart from those of other uses.
inline constexpr PhiloxKey kDropoutDomain{0x64726f70, 0x6f757431};

inline uint64_t dropout_stream(int64_t key, int64_t position) {
  return random_stream(kDropoutDomain, key, position);
}

inline float dropout_scale(double p) { return static_cast<float>(1.0 / (1.0 - p)); }

}  // namespace lockstep
