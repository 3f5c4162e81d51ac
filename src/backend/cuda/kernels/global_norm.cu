#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/optimizer.h"
#include "backend/cuda/kernels/square_sum.cuh"
#include "backend/cuda/kernels/sums.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kGroupElements = 64 * kNormBlock;

// A warp per block of 1024; the 64 sums of a group are added in index order.
__global__ void __launch_bounds__(kThreads) squares_kernel(const float* x, int64_t count, double* partials) {
  __shared__ double sums[64];
  const int64_t group = int64_t{blockIdx.x} * kGroupElements;
  for (int block = threadIdx.x / 32; block < 64; block += kThreads / 32) {
    const int64_t begin = group + block * kNormBlock;
    const int64_t end = min(count, begin + kNormBlock);
    const double sum = warp_square_sum(begin, end, [&](int64_t i) { return x[i]; });
    if (threadIdx.x % 32 == 0) sums[block] = sum;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  double total = 0;
  for (int block = 0; block < 64; ++block) total += sums[block];
  partials[blockIdx.x] = total;
}

__global__ void __launch_bounds__(1024) norm_kernel(const double* partials, int64_t count, float* norm) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += 1024) sum += partials[i];
  sum = block_all<1024>(sum);
  if (threadIdx.x == 0) *norm = static_cast<float>(sqrt(sum));
}

}  // namespace

int64_t global_norm_workspace(const int64_t* counts, int buffers) {
  int64_t groups = 0;
  for (int i = 0; i < buffers; ++i) groups += ceil_div(counts[i], kGroupElements);
  return groups * int64_t{sizeof(double)};
}

void global_norm(cudaStream_t stream, const float* const* buffers, const int64_t* counts, int number,
                 float* norm, void* workspace) {
  auto* partials = static_cast<double*>(workspace);
  int64_t used = 0;
  for (int i = 0; i < number; ++i) {
    const int64_t groups = ceil_div(counts[i], kGroupElements);
    if (groups > 0)
      squares_kernel<<<static_cast<unsigned>(groups), kThreads, 0, stream>>>(buffers[i], counts[i],
                                                                             partials + used);
    used += groups;
  }
  norm_kernel<<<1, 1024, 0, stream>>>(partials, used, norm);
  require_launched("global_norm");
}

}  // namespace lockstep::cuda
