#include "backend/cuda/kernels/launch.h"

#include "base/error.h"

namespace lockstep::cuda {

void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw DeviceError("CUDA: {}: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status));
}

void require_launched(const char* kernel) { require(cudaGetLastError(), kernel); }

void require_that(bool holds, const char* invariant) {
  LOCKSTEP_CHECK(holds, "in a launch of a CUDA kernel: {}", invariant);
}

void throw_unsupported(DType dtype) {
  throw InternalError("a CUDA kernel was launched for {}, which it does not serve", name_of(dtype));
}

}  // namespace lockstep::cuda
