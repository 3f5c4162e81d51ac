#include "backend/cpu/transpose_block.h"

#include <emmintrin.h>

#include <algorithm>

#include "base/error.h"

namespace lockstep::cpu {
namespace {

template <typename T>
__m128i interleave_low(__m128i a, __m128i b) {
  if constexpr (sizeof(T) == 1) return _mm_unpacklo_epi8(a, b);
  if constexpr (sizeof(T) == 2) return _mm_unpacklo_epi16(a, b);
  if constexpr (sizeof(T) == 4) return _mm_unpacklo_epi32(a, b);
  if constexpr (sizeof(T) == 8) return _mm_unpacklo_epi64(a, b);
}

template <typename T>
__m128i interleave_high(__m128i a, __m128i b) {
  if constexpr (sizeof(T) == 1) return _mm_unpackhi_epi8(a, b);
  if constexpr (sizeof(T) == 2) return _mm_unpackhi_epi16(a, b);
  if constexpr (sizeof(T) == 4) return _mm_unpackhi_epi32(a, b);
  if constexpr (sizeof(T) == 8) return _mm_unpackhi_epi64(a, b);
}

template <typename T>
inline constexpr int kSide = 16 / static_cast<int>(sizeof(T));

// A square of kSide rows of one register each. Interleaving the first half of the rows with the second
// rotates the bits of an element's index by one; after log2(kSide) times its row and column have changed
// places.
template <typename T>
void transpose_square(T* to, int64_t to_stride, const T* from, int64_t from_stride) {
  constexpr int kRows = kSide<T>;
  __m128i a[kRows];
  for (int r = 0; r < kRows; ++r)
    a[r] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + r * from_stride));
  for (int stage = 1; stage < kRows; stage *= 2) {
    __m128i b[kRows];
    for (int r = 0; r < kRows / 2; ++r) {
      b[2 * r] = interleave_low<T>(a[r], a[r + kRows / 2]);
      b[2 * r + 1] = interleave_high<T>(a[r], a[r + kRows / 2]);
    }
    for (int r = 0; r < kRows; ++r) a[r] = b[r];
  }
  for (int r = 0; r < kRows; ++r) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + r * to_stride), a[r]);
}

template <typename T>
void transpose_scalar(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t rows,
                      int64_t columns) {
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
}

// Tiles of one cache line squared: each line read is used up and each line written is completed while in
// cache.
template <typename T>
void transpose(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 64 / static_cast<int64_t>(sizeof(T));
  constexpr int64_t kStep = kSide<T>;
  const int64_t square_rows = rows / kStep * kStep;
  const int64_t square_columns = columns / kStep * kStep;
  for (int64_t row = 0; row < square_rows; row += kTile)
    for (int64_t column = 0; column < square_columns; column += kTile)
      for (int64_t c = column; c < std::min(column + kTile, square_columns); c += kStep)
        for (int64_t r = row; r < std::min(row + kTile, square_rows); r += kStep)
          transpose_square(to + c * to_stride + r, to_stride, from + r * from_stride + c, from_stride);
  transpose_scalar(to + square_rows, to_stride, from + square_rows * from_stride, from_stride,
                   rows - square_rows, square_columns);
  transpose_scalar(to + square_columns * to_stride, to_stride, from + square_columns, from_stride, rows,
                   columns - square_columns);
}

template <typename T>
void transpose_as(void* to, int64_t to_stride, const void* from, int64_t from_stride, int64_t rows,
                  int64_t columns) {
  transpose(static_cast<T*>(to), to_stride, static_cast<const T*>(from), from_stride, rows, columns);
}

}  // namespace

void transpose_block(int64_t width, void* to, int64_t to_stride, const void* from, int64_t from_stride,
                     int64_t rows, int64_t columns) {
  switch (width) {
    case 1: return transpose_as<uint8_t>(to, to_stride, from, from_stride, rows, columns);
    case 2: return transpose_as<uint16_t>(to, to_stride, from, from_stride, rows, columns);
    case 4: return transpose_as<uint32_t>(to, to_stride, from, from_stride, rows, columns);
    case 8: return transpose_as<uint64_t>(to, to_stride, from, from_stride, rows, columns);
    default: throw InternalError("transpose_block: elements of {} bytes", width);
  }
}

}  // namespace lockstep::cpu
