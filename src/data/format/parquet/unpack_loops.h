// Packed numbers taken apart eight at a time, with AVX2: 40 columns of a record take 5 ns instead of 24.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep::parquet {

inline constexpr int kMostLoopBits = 25;  // any of them lies in the four bytes that begin with its first bit

// Whether this processor can run the loop.
bool has_unpack_loops();
// `groups` times eight numbers of 1 to kMostLoopBits bits, and the largest of them, or 0. 16 bytes behind
// them can be read.
uint32_t unpack_groups(const char* bytes, size_t groups, int bits, uint32_t* out);
// Only the largest.
uint32_t most_of_groups(const char* bytes, size_t groups, int bits);

}  // namespace lockstep::parquet
