// What the launch functions of all kernels share.
//
// A launch function takes the stream, addresses on the device and sizes; it enqueues and returns. It never
// waits, never allocates, and every buffer it needs beside operands and results is a `workspace` whose size a
// function beside it gives. Work is cut by shape alone and sums have one order, so that the same inputs give
// the same bits on every run.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "base/dtype.h"

namespace lockstep::cuda {

// DeviceError with the call and CUDA's own words, unless the status is that of success.
void require(cudaError_t status, const char* what);
// After a launch: the launch's own error, which a later call would otherwise report in another's name.
void require_launched(const char* kernel);
[[noreturn]] void throw_unsupported(DType dtype);
// An invariant of a launch function. A function of its own, since device code is compiled without the
// formatting library.
void require_that(bool holds, const char* invariant);

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Blocks of a grid-stride loop over `items`. The bound is a constant: only how work is dealt out depends on
// it.
inline unsigned blocks_for(int64_t items, int64_t per_block, int64_t most = 1 << 20) {
  const int64_t blocks = ceil_div(items, per_block);
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

}  // namespace lockstep::cuda
