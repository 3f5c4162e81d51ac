// total_of: a sum in double and a count over elements that a function gives, by one block in a fixed pattern:
// thread t takes elements t, t + 1024, ... and the threads' sums are added by one tree. For up to some
// hundred thousand terms.
#pragma once
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/kernels/sums.cuh"

namespace lockstep::cuda {

template <typename Term, typename Count>
__global__ void __launch_bounds__(1024)
    total_kernel(int64_t terms, Term term, Count counts, bool add, float* sum, int64_t* count) {
  double mine = 0;
  long long counted = 0;
  for (int64_t i = threadIdx.x; i < terms; i += 1024) {
    mine += term(i);
    counted += counts(i);
  }
  mine = block_all<1024>(mine);
  counted = block_all<1024>(counted);
  if (threadIdx.x != 0) return;
  *sum = static_cast<float>(mine) + (add ? *sum : 0.0f);
  if (count != nullptr) *count = counted + (add ? *count : 0);
}

template <typename Term, typename Count>
void total_of(cudaStream_t stream, int64_t terms, Term term, Count counts, bool add, float* sum,
              int64_t* count) {
  total_kernel<<<1, 1024, 0, stream>>>(terms, term, counts, add, sum, count);
  require_launched("total");
}

}  // namespace lockstep::cuda
