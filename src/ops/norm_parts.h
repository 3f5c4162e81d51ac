// The parts of a global norm, as square_sums makes them and norm_of_squares adds them up.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace lockstep {

inline constexpr int64_t kNormPartElements = 1024;
inline constexpr int64_t kNormPartBytes = sizeof(double);
inline constexpr int64_t norm_part_count(int64_t elements) {
  return (elements + kNormPartElements - 1) / kNormPartElements;
}

using NormPart = std::array<uint8_t, kNormPartBytes>;
inline NormPart bytes_of_norm_part(double value) { return std::bit_cast<NormPart>(value); }
inline double norm_part_of(const NormPart& bytes) { return std::bit_cast<double>(bytes); }

}  // namespace lockstep
