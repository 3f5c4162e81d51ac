// max_pool2d and avg_pool2d over [N, H, W, C], and their gradients: each input pixel gathers from the windows
// that cover it, in row-major order of the windows.
#pragma once
#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

struct PoolShape {
  int64_t images = 0, rows = 0, columns = 0, channels = 0;  // of the input
  int64_t out_rows = 0, out_columns = 0;
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, before[2] = {0, 0};
  bool count_padding = false;  // avg: divide by the whole window
  DType dtype = DType::kF32;
};

// index is the place of the first largest pixel of the window, NaN counting as largest: row * columns +
// column.
void max_pool2d(cudaStream_t stream, const PoolShape& shape, const void* x, void* y, int32_t* index);
void max_pool2d_grad(cudaStream_t stream, const PoolShape& shape, const void* dy, const int32_t* index,
                     void* dx);
void avg_pool2d(cudaStream_t stream, const PoolShape& shape, const void* x, void* y);
void avg_pool2d_grad(cudaStream_t stream, const PoolShape& shape, const void* dy, void* dx);

}  // namespace lockstep::cuda
