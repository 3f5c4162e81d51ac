#include "backend/cuda/kernels/launch.h"

#include "base/error.h"

namespace lockstep::cuda {

namespace {

// Of a kernel that ran before the call that tells of it; no call of this process succeeds any more.
bool is_of_a_kernel(cudaError_t status) {
  return status == cudaErrorIllegalAddress || status == cudaErrorLaunchFailure ||
         status == cudaErrorMisalignedAddress || status == cudaErrorIllegalInstruction ||
         status == cudaErrorHardwareStackError || status == cudaErrorInvalidAddressSpace ||
         status == cudaErrorInvalidPc || status == cudaErrorAssert || status == cudaErrorLaunchTimeout;
}

}  // namespace

void require(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw DeviceError("CUDA: {}: {} ({}){}", what, cudaGetErrorString(status), cudaGetErrorName(status),
                    is_of_a_kernel(status)
                        ? "; a kernel before it failed, which CUDA_LAUNCH_BLOCKING=1 in the environment names"
                        : "");
}

void require_launched(const char* kernel) { require(cudaGetLastError(), kernel); }

void require_that(bool holds, const char* invariant) {
  LOCKSTEP_CHECK(holds, "in a launch of a CUDA kernel: {}", invariant);
}

void throw_unsupported(DType dtype) {
  throw InternalError("a CUDA kernel was launched for {}, which it does not serve", name_of(dtype));
}

}  // namespace lockstep::cuda
