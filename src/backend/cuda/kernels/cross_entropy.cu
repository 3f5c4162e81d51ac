// A block per row. The running maximum and the sum of exponentials are kept together, so that a row is read
// once for the loss; the gradient reads it again, from the cache where the row has just been read.
#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/losses.h"
#include "backend/cuda/kernels/sums.cuh"
#include "backend/cuda/kernels/total.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 512;

struct Running {
  float highest = -INFINITY;
  float sum = 0;    // of exp(x - highest)
  float total = 0;  // of x, for smoothing

  __device__ __forceinline__ void add(float x) {
    total += x;
    if (x > highest) {
      sum = sum * expf(highest - x) + 1.0f;
      highest = x;
    } else if (x == x && highest != -INFINITY) {
      sum += expf(x - highest);
    } else if (x != x) {
      sum = x;  // NaN stays
    }
  }

  // The same for several at once: one look at the maximum, and the exponentials by one instruction each,
  // whose error is two steps of the last place. The loss is limited by these otherwise, not by memory.
  template <int N>
  __device__ __forceinline__ void add(const float (&x)[N]) {
    float most = x[0];
#pragma unroll
    for (int k = 1; k < N; ++k) most = fmaxf(most, x[k]);
    if (!(fabsf(most) < INFINITY)) {
#pragma unroll
      for (int k = 0; k < N; ++k) add(x[k]);
      return;
    }
    if (most > highest) {
      sum *= power_of_two((highest - most) * kLog2E);
      highest = most;
    }
    float more = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      more += power_of_two((x[k] - highest) * kLog2E);
      total += x[k];
    }
    sum += more;
  }

  static constexpr float kLog2E = 1.44269504f;
  static __device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }
};

template <typename T>
__device__ __forceinline__ Running add_row(const T* row, int64_t classes, bool packed) {
  Running mine;
  if (!packed) {
    for (int64_t i = threadIdx.x; i < classes; i += kThreads) mine.add(to_float(row[i]));
    return mine;
  }
#pragma unroll 2
  for (int64_t i = threadIdx.x * kPack<T>; i < classes; i += kThreads * kPack<T>) {
    const Pack<T> pack = load_pack(row + i);
    float x[kPack<T>];
#pragma unroll
    for (int k = 0; k < kPack<T>; ++k) x[k] = to_float(pack.v[k]);
    mine.add(x);
  }
  return mine;
}

struct RowSums {
  float lse, mean;
};

template <typename T>
__device__ RowSums row_sums(const T* row, int64_t classes, bool packed) {
  const Running mine = add_row(row, classes, packed);
  const float highest = block_all<kThreads>(mine.highest, Max{});
  const float scaled = mine.highest == -INFINITY ? mine.sum : mine.sum * expf(mine.highest - highest);
  const float sum = block_all<kThreads>(scaled);
  const float total = block_all<kThreads>(mine.total);
  return {highest + logf(sum), total / static_cast<float>(classes)};
}

template <typename T>
__device__ void write_gradient(const CrossEntropyShape& s, const T* row, int label, float lse, float scale,
                               bool packed, T* out) {
  const float smooth = s.smoothing / static_cast<float>(s.classes);
  const float hit = 1.0f - s.smoothing + smooth;
  const bool counts = label != s.ignore;
  const auto gradient = [&](float x, int64_t i) {
    return counts ? scale * (expf(x - lse) - (i == label ? hit : smooth)) : 0.0f;
  };
  if (!packed) {
    for (int64_t i = threadIdx.x; i < s.classes; i += kThreads)
      out[i] = from_float<T>(gradient(to_float(row[i]), i));
    return;
  }
  for (int64_t i = threadIdx.x * kPack<T>; i < s.classes; i += kThreads * kPack<T>) {
    Pack<T> pack = load_pack(row + i);
#pragma unroll
    for (int k = 0; k < kPack<T>; ++k) pack.v[k] = from_float<T>(gradient(to_float(pack.v[k]), i + k));
    store_pack(out + i, pack);
  }
}

// Rows are taken from the last on: the product before has just written those, so they are still in the cache.
template <typename T, bool kGradient>
__global__ void __launch_bounds__(kThreads)
    loss_kernel(CrossEntropyShape s, const float* dloss, const T* logits, T* dlogits, const int32_t* labels,
                float* losses, float* lse, BadLabel* bad, bool packed) {
  const int64_t r = s.rows - 1 - blockIdx.x;
  const T* row = logits + r * s.classes;
  const int label = labels[r];
  const bool ignored = label == s.ignore;
  const bool valid = label >= 0 && label < s.classes;
  const float target = valid ? to_float(row[label]) : 0.0f;  // before the gradient takes its place
  RowSums sums{0, 0};
  if (!ignored) sums = row_sums(row, s.classes, packed);
  if (threadIdx.x == 0) {
    if (!ignored && !valid) atomicMin(&bad->row, static_cast<unsigned long long>(r));
    lse[r] = sums.lse;
    losses[r] = ignored ? 0.0f : sums.lse - (1.0f - s.smoothing) * target - s.smoothing * sums.mean;
  }
  if constexpr (kGradient) {
    __syncthreads();  // everybody has read the target
    write_gradient(s, row, label, sums.lse, *dloss, packed, dlogits + r * s.classes);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    gradient_kernel(CrossEntropyShape s, const float* dloss, const T* logits, const int32_t* labels,
                    const float* lse, T* dlogits, bool packed) {
  const int64_t r = blockIdx.x;
  write_gradient(s, logits + r * s.classes, labels[r], lse[r], *dloss, packed, dlogits + r * s.classes);
}

template <typename T>
bool packed_rows(const CrossEntropyShape& s, const void* a, const void* b) {
  return s.classes % kPack<T> == 0 && aligned16(a) && aligned16(b);
}

template <bool kGradient>
void launch(cudaStream_t stream, const CrossEntropyShape& s, const float* dloss, const void* logits,
            void* dlogits, const int32_t* labels, float* loss, int64_t* count, float* lse, BadLabel* bad,
            void* workspace, bool add) {
  auto* losses = static_cast<float*>(workspace);
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (s.rows > 0)
      loss_kernel<T, kGradient><<<static_cast<unsigned>(s.rows), kThreads, 0, stream>>>(
          s, dloss, static_cast<const T*>(logits), static_cast<T*>(dlogits), labels, losses, lse, bad,
          packed_rows<T>(s, logits, dlogits));
  });
  require_launched("cross_entropy");
  const int32_t ignore = s.ignore;
  total_of(
      stream, s.rows, [losses] __device__(int64_t i) { return static_cast<double>(losses[i]); },
      [labels, ignore] __device__(int64_t i) { return int64_t{labels[i] != ignore}; }, add, loss, count);
}

}  // namespace

int64_t cross_entropy_workspace(const CrossEntropyShape& shape) {
  return shape.rows * int64_t{sizeof(float)};
}

void cross_entropy(cudaStream_t stream, const CrossEntropyShape& shape, const void* logits,
                   const int32_t* labels, float* loss, int64_t* count, float* lse, BadLabel* bad,
                   void* workspace) {
  launch<false>(stream, shape, nullptr, logits, nullptr, labels, loss, count, lse, bad, workspace, false);
}

void cross_entropy_grad(cudaStream_t stream, const CrossEntropyShape& s, const float* dloss,
                        const void* logits, const int32_t* labels, const float* lse, void* dlogits) {
  if (s.rows == 0) return;
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    gradient_kernel<<<static_cast<unsigned>(s.rows), kThreads, 0, stream>>>(
        s, dloss, static_cast<const T*>(logits), labels, lse, static_cast<T*>(dlogits),
        packed_rows<T>(s, logits, dlogits));
  });
  require_launched("cross_entropy_grad");
}

void cross_entropy_in_place(cudaStream_t stream, const CrossEntropyShape& shape, const float* dloss,
                            void* logits, const int32_t* labels, float* loss, int64_t* count, float* lse,
                            BadLabel* bad, void* workspace) {
  launch<true>(stream, shape, dloss, logits, logits, labels, loss, count, lse, bad, workspace, true);
}

}  // namespace lockstep::cuda
