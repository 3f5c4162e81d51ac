// Register tiles of the attention products, and the packing that feeds them.
//
// Scores and their gradients are kept as [key][query], queries along the vector lanes: the maximum, the sum
// and the exponentials of softmax are then lane-wise, with no sum across lanes, and k and v are read as they
// lie in memory. Every product is a tile of kTileRows by kTileVecs vectors held in registers, whose left
// operand is broadcast from memory and whose right operand is rows of whole vectors. Each output element is
// one chain of fma in ascending order of the summed index, whatever its place in a tile.
#pragma once
#include "backend/cpu/simd/attention_mask.h"
#include "backend/cpu/simd/vec.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

inline constexpr int kTileRows = kLanes == 16 ? 8 : 4;
inline constexpr int kTileVecs = 2;

#define LOCKSTEP_INLINE inline __attribute__((always_inline))

// Left operands: element (row, depth) either lies along its row, or one row after another at each depth.
struct LeftRows {
  const float* row[kTileRows];
  LOCKSTEP_INLINE float at(int r, int64_t k) const { return row[r][k]; }
};
struct LeftColumns {
  const float* p;
  int64_t depth_stride;
  LOCKSTEP_INLINE float at(int r, int64_t k) const { return p[k * depth_stride + r]; }
};

template <int kVecs>
struct Tile {
  Vec c[kTileRows][kVecs];

  LOCKSTEP_INLINE void clear() {
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) c[r][v] = zero();
  }

  template <class Left>
  LOCKSTEP_INLINE void multiply(const Left& left, int64_t depth, const float* right, int64_t right_stride) {
    for (int64_t k = 0; k < depth; ++k) {
      Vec b[kVecs];
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) b[v] = load(right + k * right_stride + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kTileRows; ++r) {
        const Vec a = broadcast(left.at(r, k));
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) c[r][v] = fma(a, b[v], c[r][v]);
      }
    }
  }

  LOCKSTEP_INLINE void load_from(const float* p, int64_t stride) {
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) c[r][v] = load(p + r * stride + v * kLanes);
  }
  LOCKSTEP_INLINE void store_to(float* p, int64_t stride) const {
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) store(p + r * stride + v * kLanes, c[r][v]);
  }

  // The same for a tile that overhangs its matrix: only `rows` rows and `lanes` columns are touched.
  LOCKSTEP_INLINE void load_from(const float* p, int64_t stride, int64_t rows, int64_t lanes) {
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v)
        c[r][v] = r < rows ? load(p + r * stride + v * kLanes, clip(lanes - v * kLanes, 0, kLanes)) : zero();
  }
  LOCKSTEP_INLINE void store_to(float* p, int64_t stride, int64_t rows, int64_t lanes) const {
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v)
        if (r < rows) store(p + r * stride + v * kLanes, c[r][v], clip(lanes - v * kLanes, 0, kLanes));
  }
};

// out[key][query] = dot(keys[key], queries[query]) where the mask's ranges let any pair of a tile through;
// elsewhere out is left alone. `transposed` is [dim][kBlock queries].
inline void multiply_keys_queries(const float* keys, int64_t key_stride, const float* transposed, int64_t dim,
                                  const BlockMask& mask, float* out) {
  constexpr int64_t kWidth = kTileVecs * kLanes;
  for (int64_t i = 0; i < mask.queries; i += kWidth) {
    const Range range = mask.keys_seen_by(i, kWidth);
    for (int64_t j = range.begin / kTileRows * kTileRows; j < range.end; j += kTileRows) {
      LeftRows left;
      // Rows past the last key repeat it: the tile stays whole, and nobody reads those scores.
      for (int r = 0; r < kTileRows; ++r) left.row[r] = keys + clip(j + r, 0, mask.keys - 1) * key_stride;
      Tile<kTileVecs> tile;
      tile.clear();
      tile.multiply(left, dim, transposed + i, kBlock);
      tile.store_to(out + j * kBlock + i, kBlock);
    }
  }
}

template <int kVecs>
inline void add_to_queries_panel(const float* weights, const float* values, int64_t stride,
                                 const BlockMask& mask, float* out) {
  for (int64_t i = 0; i < mask.queries; i += kTileRows) {
    const Range range = mask.keys_seen_by(i, kTileRows);
    if (range.empty()) continue;
    Tile<kVecs> tile;
    tile.load_from(out + i * stride, stride);
    tile.multiply(LeftColumns{weights + range.begin * kBlock + i, kBlock}, range.end - range.begin,
                  values + range.begin * stride, stride);
    tile.store_to(out + i * stride, stride);
  }
}

// out[query] += sum over keys of weights[key][query] * values[key]. Rows of values and out have `stride`
// floats, a multiple of kLanes, and out has kBlock rows.
inline void add_to_queries(const float* weights, const float* values, int64_t stride, const BlockMask& mask,
                           float* out) {
  int64_t d = 0;
  for (; d + kTileVecs * kLanes <= stride; d += kTileVecs * kLanes)
    add_to_queries_panel<kTileVecs>(weights, values + d, stride, mask, out + d);
  if (d < stride) add_to_queries_panel<1>(weights, values + d, stride, mask, out + d);
}

template <int kVecs>
inline void add_to_keys_panel(const float* weights, const float* values, int64_t stride,
                              const BlockMask& mask, float* out, int64_t out_stride, int64_t lanes) {
  for (int64_t j = 0; j < mask.keys; j += kTileRows) {
    const Range range = mask.queries_seeing(j, kTileRows);
    if (range.empty()) continue;
    LeftRows left;
    for (int r = 0; r < kTileRows; ++r) left.row[r] = weights + (j + r) * kBlock + range.begin;
    const int64_t rows = mask.keys - j;
    const bool whole = rows >= kTileRows && lanes >= kVecs * kLanes;
    float* p = out + j * out_stride;
    Tile<kVecs> tile;
    if (whole) tile.load_from(p, out_stride);
    if (!whole) tile.load_from(p, out_stride, rows, lanes);
    tile.multiply(left, range.end - range.begin, values + range.begin * stride, stride);
    if (whole) tile.store_to(p, out_stride);
    if (!whole) tile.store_to(p, out_stride, rows, lanes);
  }
}

// out[key] += sum over queries of weights[key][query] * values[query], for rows of `dim` floats in a caller's
// tensor.
inline void add_to_keys(const float* weights, const float* values, int64_t stride, int64_t dim,
                        const BlockMask& mask, float* out, int64_t out_stride) {
  int64_t d = 0;
  for (; d + kTileVecs * kLanes <= stride; d += kTileVecs * kLanes)
    add_to_keys_panel<kTileVecs>(weights, values + d, stride, mask, out + d, out_stride, dim - d);
  if (d < stride) add_to_keys_panel<1>(weights, values + d, stride, mask, out + d, out_stride, dim - d);
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
