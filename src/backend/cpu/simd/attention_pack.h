// Copies between a caller's strided rows and the whole-vector rows that the attention tiles work on.
#pragma once
#include "backend/cpu/simd/attention_mask.h"
#include "backend/cpu/simd/each_vec.h"
#include "backend/cpu/simd/vec.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

// A row of `dim` floats, rounded up to whole vectors.
inline int64_t padded(int64_t dim) { return (dim + kLanes - 1) / kLanes * kLanes; }

// to[row][padded(dim)] = from[row][dim] * scale, padded with zeros.
inline void pack_rows(const float* from, int64_t from_stride, int64_t rows, int64_t dim, float scale,
                      float* to) {
  const int64_t stride = padded(dim);
  for (int64_t r = 0; r < rows; ++r)
    each_vec(0, dim, [&](int64_t d, auto lanes) {
      store(to + r * stride + d, load(from + r * from_stride + d, lanes) * broadcast(scale));
    });
}

// to[row][dim] = from[row][padded(dim)] * scale[row]
inline void unpack_rows(const float* from, int64_t rows, int64_t dim, const float* scale, float* to,
                        int64_t to_stride) {
  const int64_t stride = padded(dim);
  for (int64_t r = 0; r < rows; ++r)
    each_vec(0, dim, [&](int64_t d, auto lanes) {
      store(to + r * to_stride + d, load(from + r * stride + d) * broadcast(scale[r]), lanes);
    });
}

// One stage of the transpose of kLanes vectors: swaps the off-diagonal halves of every 2*kHalf square.
template <int kHalf>
inline __attribute__((always_inline)) void swap_halves(Vec* rows) {
  VecInt low = {}, high = {};
  for (int i = 0; i < kLanes; ++i) {
    low[i] = (i & kHalf) ? kLanes + i - kHalf : i;
    high[i] = (i & kHalf) ? kLanes + i : i + kHalf;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) {
    if (r & kHalf) continue;
    const Vec a = rows[r], b = rows[r + kHalf];
    rows[r] = __builtin_shuffle(a, b, low);
    rows[r + kHalf] = __builtin_shuffle(a, b, high);
  }
}

// to[d][kBlock] = transpose of from[row][dim] * scale; columns past the last row are zero.
inline void pack_transposed(const float* from, int64_t from_stride, int64_t rows, int64_t dim, float scale,
                            float* to) {
  for (int64_t d = 0; d < dim; d += kLanes) {
    const int64_t lanes = clip(dim - d, 0, kLanes);
    for (int64_t i = 0; i < kBlock; i += kLanes) {
      Vec square[kLanes];
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r)
        square[r] = i + r < rows ? load(from + (i + r) * from_stride + d, lanes) * broadcast(scale) : zero();
      swap_halves<1>(square);
      swap_halves<2>(square);
      swap_halves<4>(square);
      if constexpr (kLanes == 16) swap_halves<kLanes / 2>(square);
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r)
        if (r < lanes) store(to + (d + r) * kBlock + i, square[r]);
    }
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
