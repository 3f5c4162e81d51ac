// Turns convolutions into matrix products: the windows of images laid out as rows of a matrix, and back.
//
// A row of the matrix is one output position: the taps of its window in order, each with the channels of one
// group, and zeros where the window lies over padding. A fixed number of images is laid out at a time, so
// that the matrix has a bounded size.
#pragma once
#include "backend/cpu/kernel_def.h"
#include "ops/conv_shape.h"

namespace lockstep::cpu {

struct Unfold {
  ConvShape shape;

  int64_t positions() const {
    return shape.window.rows.output * shape.window.columns.output;
  }  // of one image
  int64_t columns() const { return shape.window.taps() * shape.channels_per_group(); }
  // Images whose windows fill a matrix of about 16 MiB.
  int64_t images_at_once() const;

  // matrix[rows, columns()] = the windows of group `group` of `images` images that begin at x.
  void windows(const CpuContext& context, int64_t group, int64_t images, const float* x, float* matrix) const;
  // The same, transposed: matrix[columns(), rows].
  void windows_transposed(const CpuContext& context, int64_t group, int64_t images, const float* x,
                          float* matrix) const;
  // The reverse of windows(): adds up, for every pixel, what the windows hold of it, taps in order, and
  // writes it to x.
  void fold(const CpuContext& context, int64_t group, int64_t images, const float* matrix, float* x) const;
};

// Whether a convolution has so few output positions for so large a filter that the product over unfolded
// windows beats oneDNN's, which must first reorder the filter. 512 -> 512 channels, 3x3, over 64
// positions: 3.2, 2.9 and 3.0 ms (result, gradient of images, of filters) against 4.9, 3.7 and 4.1. `most` is
// the largest number of positions that counts as few.
bool is_filter_bound(const ConvShape& shape, DType dtype, int64_t most);
inline constexpr int64_t kFewPositions = 128;
inline constexpr int64_t kFewPositionsGradFilter = 256;  // where oneDNN's partial sums cost a reduction too

// Copies `columns` numbers of each row between a dense matrix and columns [first, first + columns) of a wider
// one.
void copy_columns(const CpuContext& context, int64_t rows, int64_t columns, const float* from,
                  int64_t from_stride, float* to, int64_t to_stride);

// to[j * to_stride + i] = from[i * columns + j].
void transpose_into(const CpuContext& context, int64_t rows, int64_t columns, const float* from, float* to,
                    int64_t to_stride);

}  // namespace lockstep::cpu
