// layer_norm, rms_norm, both with the residual addition before them, and their gradients.
#pragma once
#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

struct RowNormShape {
  int64_t rows = 0;
  int64_t columns = 0;
  DType dtype = DType::kF32;
  bool float_parameters = false;  // weight and bias are f32 whatever the dtype
  bool centered = false;          // layer_norm, else rms_norm
};

struct RowNormForward {
  const void* x;
  const void* residual;  // null, or added to x first: `sum` receives the sum, rounded, and is normalised
  const void* weight;
  const void* bias;  // centered only
  void* sum;
  void* y;
  float* mean;  // centered only
  float* rstd;
  float epsilon;
};

struct RowNormBackward {
  const void* dy;
  const void* x;
  const void* weight;
  const float* mean;
  const float* rstd;
  const void* residual;  // null, or the gradient that joins: dx is rounded first, then added
  void* dx;
  void* dweight;
  void* dbias;
};

void row_norm(cudaStream_t stream, const RowNormShape& shape, const RowNormForward& args);

int64_t row_norm_grad_workspace(const RowNormShape& shape);
void row_norm_grad(cudaStream_t stream, const RowNormShape& shape, const RowNormBackward& args,
                   void* workspace);

}  // namespace lockstep::cuda
