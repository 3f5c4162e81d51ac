// The stream of random numbers that belongs to one use of them: a function of what the use is (a domain), who
// it is (key) and when (position). Words 0 (low) and 1 (high) of philox4x32(counter = {key low, key high,
// position low, position high}, key = domain).
#pragma once
#include "base/philox.h"

namespace lockstep {

inline uint64_t random_stream(PhiloxKey domain, int64_t key, int64_t position) {
  const auto k = static_cast<uint64_t>(key);
  const auto p = static_cast<uint64_t>(position);
  const auto words = philox4x32({static_cast<uint32_t>(k), static_cast<uint32_t>(k >> 32),
                                 static_cast<uint32_t>(p), static_cast<uint32_t>(p >> 32)},
                                domain);
  return words[0] | uint64_t{words[1]} << 32;
}

}  // namespace lockstep
