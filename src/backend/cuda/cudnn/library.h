// cuDNN, loaded when the first plan wants it.
#pragma once
#include <cuda_runtime.h>
#include <cudnn.h>

#include <cstdint>
#include <string>

namespace lockstep::cuda {

// The cuDNN that is loaded: 91400 for 9.14.0. UserError where none can be.
struct Cudnn {
  int64_t version = 0;
  std::string path;
};
const Cudnn& cudnn();
cudnnHandle_t make_cudnn_handle();
void destroy_cudnn_handle(cudnnHandle_t handle);
void set_cudnn_stream(cudnnHandle_t handle, cudaStream_t stream);

}  // namespace lockstep::cuda
