#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/row_team.cuh"
#include "backend/cuda/kernels/softmax.h"

namespace lockstep::cuda {
namespace {

struct Row {
  int64_t first;
  int64_t stride;
};

// A thread's slice of one softmax: the threads of a warp share a row where the axis is the last, else each
// thread has a column of its own and neighbours lie side by side.
template <typename Body>
__device__ __forceinline__ void for_row(const ReducedShape& s, const Body& body) {
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (s.inner == 1) {
    if (thread / 32 < s.outer) body(Row{(thread / 32) * s.reduced, 1}, threadIdx.x % 32, 32);
  } else if (thread < s.outer * s.inner) {
    body(Row{(thread / s.inner) * s.reduced * s.inner + thread % s.inner, s.inner}, 0, 1);
  }
}

template <typename T, bool kLog>
__global__ void forward_any_kernel(const T* x, T* y, ReducedShape s) {
  for_row(s, [&](Row row, int lane, int step) {
    const auto at = [&](int64_t i) { return to_float(x[row.first + i * row.stride]); };
    float highest = -INFINITY;
    for (int64_t i = lane; i < s.reduced; i += step) highest = fmaxf(highest, at(i));
    if (step == 32) highest = warp_all(highest, Max{});
    float sum = 0;
    for (int64_t i = lane; i < s.reduced; i += step) sum += expf(at(i) - highest);
    if (step == 32) sum = warp_all(sum);
    const float scale = 1.0f / sum, log_sum = logf(sum);
    for (int64_t i = lane; i < s.reduced; i += step) {
      const float d = at(i) - highest;
      y[row.first + i * row.stride] = from_float<T>(kLog ? d - log_sum : expf(d) * scale);
    }
  });
}

template <typename T, bool kLog>
__global__ void backward_any_kernel(const T* y, const T* dy, T* dx, ReducedShape s) {
  for_row(s, [&](Row row, int lane, int step) {
    float sum = 0;
    for (int64_t i = lane; i < s.reduced; i += step) {
      const int64_t at = row.first + i * row.stride;
      sum = kLog ? sum + to_float(dy[at]) : fmaf(to_float(y[at]), to_float(dy[at]), sum);
    }
    if (step == 32) sum = warp_all(sum);
    for (int64_t i = lane; i < s.reduced; i += step) {
      const int64_t at = row.first + i * row.stride;
      const float value = to_float(y[at]), d = to_float(dy[at]);
      dx[at] = from_float<T>(kLog ? d - expf(value) * sum : value * (d - sum));
    }
  });
}

template <typename T, bool kLog, int kWarps, int kPacks>
__global__ void __launch_bounds__(kTeamThreads<kWarps>)
    forward_kernel(const T* from, T* to, int64_t rows, int columns) {
  using Team = RowTeam<T, kWarps, kPacks>;
  __shared__ float scratch[Team::kTeams][kWarps];
  const Team team(rows, columns);
  float x[kPacks][kPack<T>];
  team.load(from, x);
  float highest = -INFINITY;
  team.each([&](int p, int i) { highest = fmaxf(highest, x[p][i]); });
  highest = team.sum(highest, scratch, Max{});
  float sum = 0;
  team.each([&](int p, int i) {
    x[p][i] -= highest;
    const float e = expf(x[p][i]);
    if constexpr (!kLog) x[p][i] = e;
    sum += e;
  });
  sum = team.sum(sum, scratch);
  const float scale = 1.0f / sum, log_sum = logf(sum);
  team.each([&](int p, int i) { x[p][i] = kLog ? x[p][i] - log_sum : x[p][i] * scale; });
  team.store(to, x);
}

template <typename T, bool kLog, int kWarps, int kPacks>
__global__ void __launch_bounds__(kTeamThreads<kWarps>)
    backward_kernel(const T* from_y, const T* from_dy, T* to, int64_t rows, int columns) {
  using Team = RowTeam<T, kWarps, kPacks>;
  __shared__ float scratch[Team::kTeams][kWarps];
  const Team team(rows, columns);
  float y[kPacks][kPack<T>], dy[kPacks][kPack<T>];
  team.load(from_y, y);
  team.load(from_dy, dy);
  float sum = 0;
  team.each([&](int p, int i) { sum = kLog ? sum + dy[p][i] : fmaf(y[p][i], dy[p][i], sum); });
  sum = team.sum(sum, scratch);
  team.each(
      [&](int p, int i) { dy[p][i] = kLog ? dy[p][i] - expf(y[p][i]) * sum : y[p][i] * (dy[p][i] - sum); });
  team.store(to, dy);
}

unsigned any_blocks(const ReducedShape& s) {
  return blocks_for(s.inner == 1 ? s.outer * 32 : s.outer * s.inner, 128, INT32_MAX);
}

template <typename T, bool kLog>
void forward(cudaStream_t stream, const ReducedShape& s, const T* x, T* y) {
  const int columns = static_cast<int>(s.reduced);
  const bool taken =
      s.inner == 1 && aligned16(x) && aligned16(y) &&
      with_row_team<T, 4>(s.reduced, [&]<int kWarps, int kPacks>() {
        forward_kernel<T, kLog, kWarps, kPacks>
            <<<blocks_for(s.outer, kTeamsPerBlock<kWarps>, INT32_MAX), kTeamThreads<kWarps>, 0, stream>>>(
                x, y, s.outer, columns);
      });
  if (!taken) forward_any_kernel<T, kLog><<<any_blocks(s), 128, 0, stream>>>(x, y, s);
}

template <typename T, bool kLog>
void backward(cudaStream_t stream, const ReducedShape& s, const T* y, const T* dy, T* dx) {
  const int columns = static_cast<int>(s.reduced);
  const bool taken =
      s.inner == 1 && aligned16(y) && aligned16(dy) && aligned16(dx) &&
      with_row_team<T, 2>(s.reduced, [&]<int kWarps, int kPacks>() {
        backward_kernel<T, kLog, kWarps, kPacks>
            <<<blocks_for(s.outer, kTeamsPerBlock<kWarps>, INT32_MAX), kTeamThreads<kWarps>, 0, stream>>>(
                y, dy, dx, s.outer, columns);
      });
  if (!taken) backward_any_kernel<T, kLog><<<any_blocks(s), 128, 0, stream>>>(y, dy, dx, s);
}

}  // namespace

void softmax(cudaStream_t stream, const ReducedShape& shape, DType dtype, bool logarithm, const void* x,
             void* y) {
  if (shape.outer * shape.reduced * shape.inner == 0) return;
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    logarithm ? forward<T, true>(stream, shape, from, to) : forward<T, false>(stream, shape, from, to);
  });
  require_launched("softmax");
}

void softmax_grad(cudaStream_t stream, const ReducedShape& shape, DType dtype, bool logarithm, const void* y,
                  const void* dy, void* dx) {
  if (shape.outer * shape.reduced * shape.inner == 0) return;
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* result = static_cast<const T*>(y);
    const auto* gradient = static_cast<const T*>(dy);
    auto* to = static_cast<T*>(dx);
    logarithm ? backward<T, true>(stream, shape, result, gradient, to)
              : backward<T, false>(stream, shape, result, gradient, to);
  });
  require_launched("softmax_grad");
}

}  // namespace lockstep::cuda
