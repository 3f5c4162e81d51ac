// Stochastic rounding of f32 to bf16: the definition that every backend and the interpreter share.
//
// 16 random bits are added below the 16 bits that are kept, and what lies below is cut off: a number between
// two neighbours becomes the farther from zero with the probability of its distance from the other, so that
// the mean is the number itself. Infinities and NaN stay what they are; finite numbers beyond the largest
// bf16 may become infinite, as they do when rounded to nearest. Element i draws the upper half of
// Philox(seed, rounding_stream(key, position)).bits(i).
#pragma once
#include <bit>
#include <string_view>

#include "ops/random_stream.h"

namespace lockstep {

// "roun", "ding" in ASCII: keeps these streams apart from those of other uses.
inline constexpr PhiloxKey kRoundingDomain{0x726f756e, 0x64696e67};

inline uint64_t rounding_stream(int64_t key, int64_t position) {
  return random_stream(kRoundingDomain, key, position);
}

// The key of a parameter's draws: FNV-1a of its name, so that adding or reordering parameters, or cutting the
// model into stages, moves nobody's draws.
inline int64_t rounding_key(std::string_view name) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return static_cast<int64_t>(hash >> 18);  // 46 bits
}

// A number that bf16 holds.
inline float round_stochastically(float x, uint32_t word) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  return std::bit_cast<float>((bits + (word >> 16)) & 0xffff0000u);
}

}  // namespace lockstep
