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
  // The reverse: adds up, for every pixel, what the windows hold of it, taps in order, and
  // writes it to x.
  void fold(const CpuContext& context, int64_t group, int64_t images, const float* matrix, float* x) const;
};

// Copies `columns` numbers of each row between a dense matrix and columns [first, first + columns) of a wider
// one.
void copy_columns(const CpuContext& context, int64_t rows, int64_t columns, const float* from,
                  int64_t from_stride, float* to, int64_t to_stride);

}  // namespace lockstep::cpu
