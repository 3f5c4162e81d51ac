// Which random numbers a dropout draws: the definition that every backend and the interpreter share.
//
// rng = (seed, position), where position identifies step and microbatch; key tells the dropouts of one model
// apart. Element i (row-major) is dropped when Philox(seed, stream).bernoulli(i, p), with stream = words 0
// (low) and 1 (high) of philox4x32(counter = {key low, key high, position low, position high}, key =
// {kDropoutDomain0, kDropoutDomain1}). Kept elements are multiplied by 1 / (1 - p), rounded once to f32.
#pragma once
#include "base/philox.h"

namespace lockstep {

// "drop", "out1" in ASCII: keeps these streams apart from those of other uses.
inline constexpr uint32_t kDropoutDomain0 = 0x64726f70;
inline constexpr uint32_t kDropoutDomain1 = 0x6f757431;

inline uint64_t dropout_stream(int64_t key, int64_t position) {
  const auto k = static_cast<uint64_t>(key);
  const auto p = static_cast<uint64_t>(position);
  const auto words = philox4x32({static_cast<uint32_t>(k), static_cast<uint32_t>(k >> 32),
                                 static_cast<uint32_t>(p), static_cast<uint32_t>(p >> 32)},
                                {kDropoutDomain0, kDropoutDomain1});
  return words[0] | uint64_t{words[1]} << 32;
}

inline float dropout_scale(double p) { return static_cast<float>(1.0 / (1.0 - p)); }

}  // namespace lockstep
