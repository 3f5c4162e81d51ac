#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/optimizer.h"
#include "backend/cuda/kernels/square_sum.cuh"
#include "backend/cuda/kernels/sums.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kGroupElements = 64 * kNormBlock;

// A warp per block of 1024; the 64 sums of a group are added in index order.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    squares_kernel(const T* x, int64_t count, bool packed, double* partials) {
  __shared__ double sums[64];
  const int64_t group = int64_t{blockIdx.x} * kGroupElements;
  for (int block = threadIdx.x / 32; block < 64; block += kThreads / 32) {
    const int64_t begin = group + block * kNormBlock;
    const int64_t end = min(count, begin + kNormBlock);
    const double sum = warp_square_sum(x, begin, end, packed);
    if (threadIdx.x % 32 == 0) sums[block] = sum;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  double total = 0;
  for (int block = 0; block < 64; ++block) total += sums[block];
  partials[blockIdx.x] = total;
}

// The sums of single blocks, for workers that hold parts of what the norm is of.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    block_squares_kernel(const T* x, int64_t count, bool packed, double* sums) {
  const int64_t block = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / 32;
  const int64_t begin = block * kNormBlock;
  if (begin >= count) return;
  const double sum = warp_square_sum(x, begin, min(count, begin + kNormBlock), packed);
  if (threadIdx.x % 32 == 0) sums[block] = sum;
}

// 64 of them in index order, as squares_kernel adds them.
__global__ void __launch_bounds__(kThreads)
    group_kernel(const double* sums, int64_t blocks, double* partials) {
  const int64_t group = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (group * 64 >= blocks) return;
  double total = 0;
  for (int64_t block = group * 64; block < min(blocks, group * 64 + 64); ++block) total += sums[block];
  partials[group] = total;
}

__global__ void __launch_bounds__(1024) norm_kernel(const double* partials, int64_t count, float* norm) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += 1024) sum += partials[i];
  sum = block_all<1024>(sum);
  if (threadIdx.x == 0) *norm = static_cast<float>(sqrt(sum));
}

// Calls body with the buffer as what it holds.
template <typename Body>
void with_elements(const NormBuffer& buffer, const Body& body) {
  if (buffer.dtype == DType::kF32) return body(static_cast<const float*>(buffer.data));
  require_that(buffer.dtype == DType::kBF16, "a norm is of f32 or bf16");
  body(static_cast<const bf16*>(buffer.data));
}

}  // namespace

int64_t global_norm_workspace(std::span<const NormBuffer> buffers) {
  int64_t groups = 0;
  for (const NormBuffer& buffer : buffers) groups += ceil_div(buffer.count, kGroupElements);
  return groups * int64_t{sizeof(double)};
}

void global_norm(cudaStream_t stream, std::span<const NormBuffer> buffers, float* norm, void* workspace) {
  auto* partials = static_cast<double*>(workspace);
  int64_t used = 0;
  for (const NormBuffer& buffer : buffers) {
    const int64_t groups = ceil_div(buffer.count, kGroupElements);
    if (groups == 0) continue;
    with_elements(buffer, [&](const auto* x) {
      squares_kernel<<<static_cast<unsigned>(groups), kThreads, 0, stream>>>(x, buffer.count, aligned16(x),
                                                                             partials + used);
    });
    used += groups;
  }
  norm_kernel<<<1, 1024, 0, stream>>>(partials, used, norm);
  require_launched("global_norm");
}

void square_sums(cudaStream_t stream, std::span<const NormBuffer> buffers, double* sums) {
  for (const NormBuffer& buffer : buffers) {
    const int64_t blocks = ceil_div(buffer.count, kNormBlock);
    if (blocks == 0) continue;
    with_elements(buffer, [&](const auto* x) {
      block_squares_kernel<<<static_cast<unsigned>(ceil_div(blocks, kThreads / 32)), kThreads, 0, stream>>>(
          x, buffer.count, aligned16(x), sums);
    });
    sums += blocks;
  }
  require_launched("square_sums");
}

int64_t norm_of_squares_workspace(const int64_t* blocks, int buffers) {
  int64_t groups = 0;
  for (int i = 0; i < buffers; ++i) groups += ceil_div(blocks[i], 64);
  return groups * int64_t{sizeof(double)};
}

void norm_of_squares(cudaStream_t stream, const double* const* sums, const int64_t* blocks, int number,
                     float* norm, void* workspace) {
  auto* partials = static_cast<double*>(workspace);
  int64_t used = 0;
  for (int i = 0; i < number; ++i) {
    const int64_t groups = ceil_div(blocks[i], 64);
    if (groups > 0)
      group_kernel<<<static_cast<unsigned>(ceil_div(groups, kThreads)), kThreads, 0, stream>>>(
          sums[i], blocks[i], partials + used);
    used += groups;
  }
  norm_kernel<<<1, 1024, 0, stream>>>(partials, used, norm);
  require_launched("norm_of_squares");
}

}  // namespace lockstep::cuda
