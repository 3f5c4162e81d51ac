// batch_norm and its gradient over [rows, channels], channels last.
//
// Statistics are sums over fixed parts of the rows, of differences from the first row's value so that little
// is lost to cancellation; parts are added in double in a fixed order.
#pragma once
#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

struct ChannelNormShape {
  int64_t rows = 0;
  int64_t channels = 0;
  DType dtype = DType::kF32;
  bool float_parameters = false;
  bool training = true;  // statistics of the batch, else the running ones
  bool relu = false;
};

struct ChannelNormForward {
  const void* x;
  const void* weight;
  const void* bias;
  const float* running_mean;      // not training
  const float* running_variance;  // not training
  void* y;
  float* mean;
  float* rstd;
  float* variance;  // training: unbiased
  double epsilon;
};

struct ChannelNormBackward {
  const void* dy;
  const void* x;
  const void* weight;
  const void* bias;  // with relu: finds again which elements passed
  const float* mean;
  const float* rstd;
  void* dx;
  void* dweight;
  void* dbias;
};

int64_t channel_norm_workspace(const ChannelNormShape& shape);
void channel_norm(cudaStream_t stream, const ChannelNormShape& shape, const ChannelNormForward& args,
                  void* workspace);
void channel_norm_grad(cudaStream_t stream, const ChannelNormShape& shape, const ChannelNormBackward& args,
                       void* workspace);

}  // namespace lockstep::cuda
