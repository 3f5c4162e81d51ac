// group_norm over [samples, pixels, channels], and its gradient.
//
// A block owns a group of a sample, whose sums are in double. The parameters' gradients are sums per sample
// and channel first, then over the samples in order.
#pragma once
#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

struct GroupNormShape {
  int64_t samples = 0, pixels = 0, channels = 0, groups = 1;
  DType dtype = DType::kF32;
  bool float_parameters = false;
};

// mean and rstd are f32 [samples, groups].
void group_norm(cudaStream_t stream, const GroupNormShape& shape, const void* x, const void* weight,
                const void* bias, double epsilon, void* y, float* mean, float* rstd);

int64_t group_norm_grad_workspace(const GroupNormShape& shape);
// dx may be dy or x.
void group_norm_grad(cudaStream_t stream, const GroupNormShape& shape, const void* dy, const void* x,
                     const void* weight, const float* mean, const float* rstd, void* dx, void* dweight,
                     void* dbias, void* workspace);

}  // namespace lockstep::cuda
