// Transposes a small matrix of elements of 1, 2, 4 or 8 bytes between two places in memory.
#pragma once
#include <cstdint>

namespace lockstep::cpu {

// to[c][r] = from[r][c] for r < rows, c < columns. Strides are in elements between rows of either side.
void transpose_block(int64_t width, void* to, int64_t to_stride, const void* from, int64_t from_stride,
                     int64_t rows, int64_t columns);

}  // namespace lockstep::cpu
