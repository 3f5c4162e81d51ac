// bce_with_logits and mse: pieces of 4096 elements, each summed by a block in double.
#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/losses.h"
#include "backend/cuda/kernels/sums.cuh"
#include "backend/cuda/kernels/total.cuh"

namespace lockstep::cuda {
namespace {

constexpr int64_t kPieceElements = 4096;
constexpr int kThreads = 256;

template <typename Term>
__global__ void __launch_bounds__(kThreads) pieces_kernel(int64_t count, Term term, double* pieces) {
  const int64_t begin = int64_t{blockIdx.x} * kPieceElements;
  const int64_t end = min(count, begin + kPieceElements);
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) sum += static_cast<double>(term(i));
  sum = block_all<kThreads>(sum);
  if (threadIdx.x == 0) pieces[blockIdx.x] = sum;
}

template <typename Term>
void sum_terms(cudaStream_t stream, int64_t count, Term term, float* loss, int64_t* number, void* workspace) {
  auto* pieces = static_cast<double*>(workspace);
  const int64_t number_of_pieces = ceil_div(count, kPieceElements);
  if (count > 0)
    pieces_kernel<<<static_cast<unsigned>(number_of_pieces), kThreads, 0, stream>>>(count, term, pieces);
  require_launched("pair_loss");
  total_of(
      stream, number_of_pieces, [pieces] __device__(int64_t i) { return pieces[i]; },
      [count] __device__(int64_t i) { return i == 0 ? count : int64_t{0}; }, false, loss, number);
}

template <typename T>
struct Pair {
  const T* logits;
  const void* labels;
  bool labels_float;
  const float* weights;
  __device__ float label(int64_t i) const { return load_parameter<T>(labels, labels_float, i); }
  __device__ float weight(int64_t i) const { return weights == nullptr ? 1.0f : weights[i]; }
};

template <typename T>
struct BceTerm {
  Pair<T> pair;
  __device__ float operator()(int64_t i) const {
    const float x = to_float(pair.logits[i]);
    return pair.weight(i) * (fmaxf(x, 0.0f) - x * pair.label(i) + log1pf(expf(-fabsf(x))));
  }
};

template <typename T>
struct SquareTerm {
  const T *a, *b;
  __device__ float operator()(int64_t i) const {
    const float d = to_float(a[i]) - to_float(b[i]);
    return d * d;
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    bce_grad_kernel(Pair<T> pair, const float* dloss, int64_t count, T* dlogits) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const float sigmoid = 1.0f / (1.0f + expf(-to_float(pair.logits[i])));
  dlogits[i] = from_float<T>(*dloss * (sigmoid - pair.label(i)) * pair.weight(i));
}

}  // namespace

int64_t pair_loss_workspace(int64_t count) {
  return ceil_div(count, kPieceElements) * int64_t{sizeof(double)};
}

void bce_with_logits(cudaStream_t stream, DType dtype, const void* logits, const void* labels,
                     bool labels_float, const float* weights, int64_t count, float* loss, int64_t* number,
                     void* workspace) {
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    const Pair<T> pair{static_cast<const T*>(logits), labels, labels_float, weights};
    sum_terms(stream, count, BceTerm<T>{pair}, loss, number, workspace);
  });
}

void bce_with_logits_grad(cudaStream_t stream, DType dtype, const float* dloss, const void* logits,
                          const void* labels, bool labels_float, const float* weights, int64_t count,
                          void* dlogits) {
  if (count == 0) return;
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    const Pair<T> pair{static_cast<const T*>(logits), labels, labels_float, weights};
    bce_grad_kernel<<<blocks_for(count, kThreads, INT32_MAX), kThreads, 0, stream>>>(
        pair, dloss, count, static_cast<T*>(dlogits));
  });
  require_launched("bce_with_logits_grad");
}

void mse(cudaStream_t stream, DType dtype, const void* a, const void* b, int64_t count, float* loss,
         int64_t* number, void* workspace) {
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    sum_terms(stream, count, SquareTerm<T>{static_cast<const T*>(a), static_cast<const T*>(b)}, loss, number,
              workspace);
  });
}

}  // namespace lockstep::cuda
