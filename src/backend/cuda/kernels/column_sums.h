// Sums over one axis of a tensor seen as [outer, reduced, inner], and the second stage that all sums in parts
// share.
//
// The reduced axis is cut into parts whose length follows from the shape alone; parts are summed in float and
// added in index order.
#pragma once
#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

struct ReducedShape {
  int64_t outer = 1;
  int64_t reduced = 1;
  int64_t inner = 1;
};

// out[c] = scale * (partials[0][c] + partials[1][c] + ...), rows `stride` floats apart: eight sums of every
// eighth row, then added in order. With no rows the result is zero.
void sum_partials(cudaStream_t stream, const float* partials, int64_t parts, int64_t stride, int64_t columns,
                  float scale, DType out_dtype, void* out);

int64_t sum_axis_workspace(const ReducedShape& shape);
// out[outer, inner] = scale * sum over `reduced`; scale 1/reduced gives the mean.
void sum_axis(cudaStream_t stream, const ReducedShape& shape, DType dtype, const void* x, float scale,
              DType out_dtype, void* out, void* workspace);

// The largest element, NaN if there is one, and its first position along the axis (argmax; may be null).
void max_axis(cudaStream_t stream, const ReducedShape& shape, DType dtype, const void* x, void* out,
              int32_t* positions);
// dx = dy at the first position of the largest element, zero elsewhere.
void max_axis_grad(cudaStream_t stream, const ReducedShape& shape, DType dtype, const void* x, const void* dy,
                   void* dx);

}  // namespace lockstep::cuda
