#include <type_traits>

#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/tree_sum.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;

// kSlots: the next power of two, so that the loops over the tree unroll and every value stays in a register.
template <typename T, int kSlots, int N>
__device__ __forceinline__ void sum_at(const TreeSources& sources, bool round_nodes, T* out, int64_t i) {
  Pack<T, N> in[kSlots];
#pragma unroll
  for (int s = 0; s < kSlots; ++s)
    if (s < sources.count)
      in[s] = *reinterpret_cast<const Pack<T, N>*>(static_cast<const T*>(sources.address[s]) + i);
  Pack<T, N> result;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    float v[kSlots];
#pragma unroll
    for (int s = 0; s < kSlots; ++s) v[s] = s < sources.count ? to_float(in[s].v[k]) : 0.0f;
#pragma unroll
    for (int distance = 1; distance < kSlots; distance *= 2)
#pragma unroll
      for (int s = 0; s + distance < kSlots; s += 2 * distance)
        if (s + distance < sources.count) {
          v[s] = v[s] + v[s + distance];
          if (round_nodes) v[s] = to_float(from_float<T>(v[s]));
        }
    result.v[k] = from_float<T>(v[0]);
  }
  *reinterpret_cast<Pack<T, N>*>(out + i) = result;
}

// The same in the order of merges. Sums wait in a stack that is shifted, so that every index is known to the
// compiler and no value leaves its register.
template <typename T, int kSlots, int N>
__device__ __forceinline__ void merge_at(const TreeSources& sources, bool round_nodes, T* out, int64_t i) {
  Pack<T, N> in[kSlots];
#pragma unroll
  for (int s = 0; s < kSlots; ++s)
    if (s < sources.count)
      in[s] = *reinterpret_cast<const Pack<T, N>*>(static_cast<const T*>(sources.address[s]) + i);
  Pack<T, N> result;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    float stack[kSlots];
#pragma unroll
    for (int d = 0; d < kSlots; ++d) stack[d] = 0.0f;
#pragma unroll
    for (int s = 0; s < kSlots; ++s)
      if (s < sources.count) {
#pragma unroll
        for (int d = kSlots - 1; d > 0; --d) stack[d] = stack[d - 1];
        stack[0] = to_float(in[s].v[k]);
        for (int m = 0; m < sources.merges[s]; ++m) {
          float sum = stack[1] + stack[0];
          if (round_nodes) sum = to_float(from_float<T>(sum));
          stack[0] = sum;
#pragma unroll
          for (int d = 1; d + 1 < kSlots; ++d) stack[d] = stack[d + 1];
        }
      }
    result.v[k] = from_float<T>(stack[0]);
  }
  *reinterpret_cast<Pack<T, N>*>(out + i) = result;
}

template <typename T, int kSlots>
__global__ void __launch_bounds__(kThreads)
    merge_sum_kernel(TreeSources sources, bool round_nodes, T* out, int64_t count, bool packed) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t whole = packed ? count / kPack<T> : 0;
  for (int64_t p = first; p < whole; p += step)
    merge_at<T, kSlots, kPack<T>>(sources, round_nodes, out, p * kPack<T>);
  for (int64_t i = whole * kPack<T> + first; i < count; i += step)
    merge_at<T, kSlots, 1>(sources, round_nodes, out, i);
}

bool has_merges(const TreeSources& sources) {
  int merges = 0;
  for (int s = 0; s < sources.count; ++s) merges += sources.merges[s];
  if (merges == 0) return false;
  require_that(merges == sources.count - 1, "one sum is left of all sources");
  return true;
}

template <typename T, int kSlots>
__global__ void __launch_bounds__(kThreads)
    tree_sum_kernel(TreeSources sources, bool round_nodes, T* out, int64_t count, bool packed) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t whole = packed ? count / kPack<T> : 0;
  for (int64_t p = first; p < whole; p += step)
    sum_at<T, kSlots, kPack<T>>(sources, round_nodes, out, p * kPack<T>);
  for (int64_t i = whole * kPack<T> + first; i < count; i += step)
    sum_at<T, kSlots, 1>(sources, round_nodes, out, i);
}

}  // namespace

void tree_sum(cudaStream_t stream, DType dtype, const TreeSources& sources, bool round_nodes, void* out,
              int64_t count) {
  require_that(sources.count >= 1 && sources.count <= kMostTreeSources, "1 to 16 sources");
  if (count == 0) return;
  bool packed = aligned16(out);
  for (int s = 0; s < sources.count; ++s) packed = packed && aligned16(sources.address[s]);
  const bool merges = has_merges(sources);
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    const unsigned blocks = blocks_for(ceil_div(count, kPack<T>), kThreads);
    auto* to = static_cast<T*>(out);
    const auto launch = [&](auto slots) {
      constexpr int kSlots = decltype(slots)::value;
      if (merges)
        merge_sum_kernel<T, kSlots><<<blocks, kThreads, 0, stream>>>(sources, round_nodes, to, count, packed);
      else
        tree_sum_kernel<T, kSlots><<<blocks, kThreads, 0, stream>>>(sources, round_nodes, to, count, packed);
    };
    if (sources.count <= 2)
      launch(std::integral_constant<int, 2>());
    else if (sources.count <= 4)
      launch(std::integral_constant<int, 4>());
    else if (sources.count <= 8)
      launch(std::integral_constant<int, 8>());
    else
      launch(std::integral_constant<int, 16>());
  });
  require_launched("tree_sum");
}

}  // namespace lockstep::cuda
