#include "backend/cuda/kernels/channel_norm.h"
#include "backend/cuda/kernels/element.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kDown = 8;  // threads down the rows of a part; 32 across the channels
constexpr int64_t kMostParts = 512;
constexpr int64_t kLeastRows = 64;

int64_t part_rows(int64_t rows) {
  const int64_t even = ceil_div(rows, kMostParts);
  return even < kLeastRows ? kLeastRows : even;
}

// Two sums per channel and part. pair(row, channel, element) gives what is added; N channels per thread.
template <typename T, int N, typename Pairs>
__device__ __forceinline__ void sum_part(int64_t rows, int64_t channels, int64_t rows_per_part,
                                         const Pairs& pairs, float2* partials) {
  __shared__ float2 sums[kDown][32 * N];
  const int64_t channel = (int64_t{blockIdx.x} * 32 + threadIdx.x) * N;
  const int64_t begin = int64_t{blockIdx.y} * rows_per_part, end = min(rows, begin + rows_per_part);
  float2 sum[N] = {};
  if (channel < channels)
    for (int64_t r = begin + threadIdx.y; r < end; r += kDown) pairs(r, channel, sum);
#pragma unroll
  for (int i = 0; i < N; ++i) sums[threadIdx.y][threadIdx.x * N + i] = sum[i];
  __syncthreads();
  if (threadIdx.y != 0 || channel >= channels) return;
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int k = 1; k < kDown; ++k) {
      const float2 other = sums[k][threadIdx.x * N + i];
      sum[i] = {sum[i].x + other.x, sum[i].y + other.y};
    }
    partials[int64_t{blockIdx.y} * channels + channel + i] = sum[i];
  }
}

template <typename T, int N>
__global__ void __launch_bounds__(32 * kDown)
    moments_kernel(const T* x, int64_t rows, int64_t channels, int64_t rows_per_part, float2* partials) {
  float shift[N];
  const int64_t mine = (int64_t{blockIdx.x} * 32 + threadIdx.x) * N;
#pragma unroll
  for (int i = 0; i < N; ++i) shift[i] = mine < channels ? to_float(x[mine + i]) : 0.0f;
  sum_part<T, N>(
      rows, channels, rows_per_part,
      [&](int64_t r, int64_t channel, float2(&sum)[N]) {
        const auto pack = *reinterpret_cast<const Pack<T, N>*>(x + r * channels + channel);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const float d = to_float(pack.v[i]) - shift[i];
          sum[i] = {sum[i].x + d, fmaf(d, d, sum[i].y)};
        }
      },
      partials);
}

__device__ __forceinline__ double2 add_parts(const float2* partials, int64_t parts, int64_t channels,
                                             int64_t channel) {
  double2 sum{0, 0};
  for (int64_t p = 0; p < parts; ++p) {
    const float2 part = partials[p * channels + channel];
    sum = {sum.x + part.x, sum.y + part.y};
  }
  return sum;
}

template <typename T>
__global__ void statistics_kernel(const T* x, const float2* partials, int64_t parts, int64_t rows,
                                  int64_t channels, ChannelNormForward a, bool training) {
  const int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  double mean, variance;
  if (training) {
    const double2 sum = add_parts(partials, parts, channels, c);
    const auto n = static_cast<double>(rows);
    const double offset = sum.x / n;
    mean = to_float(x[c]) + offset;
    variance = sum.y / n - offset * offset;
    if (variance < 0) variance = 0;
    a.variance[c] = static_cast<float>(variance * n / (n - 1));
  } else {
    mean = a.running_mean[c];
    variance = a.running_variance[c];
  }
  a.mean[c] = static_cast<float>(mean);
  a.rstd[c] = static_cast<float>(1.0 / sqrt(variance + a.epsilon));
}

struct Whole {
  int64_t count;
  int64_t channels;
  bool float_parameters, relu, packed;
};

template <typename T>
__global__ void __launch_bounds__(256) normalise_kernel(ChannelNormForward a, Whole w) {
  const auto* x = static_cast<const T*>(a.x);
  auto* y = static_cast<T*>(a.y);
  const auto one = [&](float value, int64_t c) {
    const float h = (value - a.mean[c]) * a.rstd[c];
    const float result = fmaf(h, load_parameter<T>(a.weight, w.float_parameters, c),
                              load_parameter<T>(a.bias, w.float_parameters, c));
    return from_float<T>(w.relu && result < 0.0f ? 0.0f : result);
  };
  const int64_t step = int64_t{gridDim.x} * 256, first = int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (!w.packed) {
    for (int64_t i = first; i < w.count; i += step) y[i] = one(to_float(x[i]), i % w.channels);
    return;
  }
  for (int64_t i = first * kPack<T>; i < w.count; i += step * kPack<T>) {
    Pack<T> pack = load_pack(x + i);
    const int64_t c = i % w.channels;
#pragma unroll
    for (int k = 0; k < kPack<T>; ++k) pack.v[k] = one(to_float(pack.v[k]), c + k);
    store_pack(y + i, pack);
  }
}

// dy where it counts: zero where the relu was closed.
template <typename T>
__device__ __forceinline__ float open_gradient(const ChannelNormBackward& a, const Whole& w, float dy,
                                               float h, int64_t c) {
  if (!w.relu) return dy;
  const float y = fmaf(h, load_parameter<T>(a.weight, w.float_parameters, c),
                       load_parameter<T>(a.bias, w.float_parameters, c));
  return y <= 0.0f ? 0.0f : dy;
}

template <typename T, int N>
__global__ void __launch_bounds__(32 * kDown)
    gradient_sums_kernel(ChannelNormBackward a, Whole w, int64_t rows, int64_t rows_per_part,
                         float2* partials) {
  const auto* x = static_cast<const T*>(a.x);
  const auto* dy = static_cast<const T*>(a.dy);
  sum_part<T, N>(
      rows, w.channels, rows_per_part,
      [&](int64_t r, int64_t channel, float2(&sum)[N]) {
        const auto xs = *reinterpret_cast<const Pack<T, N>*>(x + r * w.channels + channel);
        const auto ds = *reinterpret_cast<const Pack<T, N>*>(dy + r * w.channels + channel);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const int64_t c = channel + i;
          const float h = (to_float(xs.v[i]) - a.mean[c]) * a.rstd[c];
          const float d = open_gradient<T>(a, w, to_float(ds.v[i]), h, c);
          sum[i] = {fmaf(d, h, sum[i].x), sum[i].y + d};
        }
      },
      partials);
}

template <typename T>
__global__ void gradient_totals_kernel(ChannelNormBackward a, Whole w, const float2* partials, int64_t parts,
                                       float2* totals) {
  const int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= w.channels) return;
  const double2 sum = add_parts(partials, parts, w.channels, c);
  totals[c] = {static_cast<float>(sum.x), static_cast<float>(sum.y)};
  store_parameter<T>(a.dweight, w.float_parameters, c, totals[c].x);
  store_parameter<T>(a.dbias, w.float_parameters, c, totals[c].y);
}

template <typename T>
__global__ void __launch_bounds__(256)
    gradient_kernel(ChannelNormBackward a, Whole w, const float2* totals, float share) {
  const auto* x = static_cast<const T*>(a.x);
  const auto* dy = static_cast<const T*>(a.dy);
  auto* dx = static_cast<T*>(a.dx);
  const auto one = [&](float value, float d, int64_t c) {
    const float rstd = a.rstd[c], h = (value - a.mean[c]) * rstd;
    d = open_gradient<T>(a, w, d, h, c);
    return from_float<T>(load_parameter<T>(a.weight, w.float_parameters, c) * rstd *
                         (d - share * (totals[c].y + h * totals[c].x)));
  };
  const int64_t step = int64_t{gridDim.x} * 256, first = int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (!w.packed) {
    for (int64_t i = first; i < w.count; i += step)
      dx[i] = one(to_float(x[i]), to_float(dy[i]), i % w.channels);
    return;
  }
  for (int64_t i = first * kPack<T>; i < w.count; i += step * kPack<T>) {
    const Pack<T> xs = load_pack(x + i);
    Pack<T> ds = load_pack(dy + i);
    const int64_t c = i % w.channels;
#pragma unroll
    for (int k = 0; k < kPack<T>; ++k) ds.v[k] = one(to_float(xs.v[k]), to_float(ds.v[k]), c + k);
    store_pack(dx + i, ds);
  }
}

template <typename T>
bool packed(const ChannelNormShape& s, const void* a, const void* b, const void* c) {
  return s.channels % kPack<T> == 0 && aligned16(a) && aligned16(b) && aligned16(c);
}

dim3 part_grid(const ChannelNormShape& s, int width) {
  return dim3(blocks_for(s.channels, 32 * width), static_cast<unsigned>(ceil_div(s.rows, part_rows(s.rows))));
}

template <typename T>
unsigned whole_grid(const Whole& w) {
  return blocks_for(w.packed ? ceil_div(w.count, kPack<T>) : w.count, 256, 1 << 16);
}

}  // namespace

int64_t channel_norm_workspace(const ChannelNormShape& s) {
  return (ceil_div(s.rows, part_rows(s.rows)) + 1) * s.channels * int64_t{sizeof(float2)};
}

void channel_norm(cudaStream_t stream, const ChannelNormShape& s, const ChannelNormForward& a,
                  void* workspace) {
  if (s.rows * s.channels == 0) return;
  auto* partials = static_cast<float2*>(workspace);
  const int64_t per_part = part_rows(s.rows), parts = ceil_div(s.rows, per_part);
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* x = static_cast<const T*>(a.x);
    const bool wide = packed<T>(s, a.x, a.y, nullptr);
    if (s.training && wide)
      moments_kernel<T, kPack<T>>
          <<<part_grid(s, kPack<T>), dim3(32, kDown), 0, stream>>>(x, s.rows, s.channels, per_part, partials);
    else if (s.training)
      moments_kernel<T, 1>
          <<<part_grid(s, 1), dim3(32, kDown), 0, stream>>>(x, s.rows, s.channels, per_part, partials);
    statistics_kernel<<<blocks_for(s.channels, 128), 128, 0, stream>>>(x, partials, parts, s.rows, s.channels,
                                                                       a, s.training);
    const Whole whole{s.rows * s.channels, s.channels, s.float_parameters, s.relu, wide};
    normalise_kernel<T><<<whole_grid<T>(whole), 256, 0, stream>>>(a, whole);
  });
  require_launched("channel_norm");
}

void channel_norm_grad(cudaStream_t stream, const ChannelNormShape& s, const ChannelNormBackward& a,
                       void* workspace) {
  if (s.rows * s.channels == 0) return;
  auto* totals = static_cast<float2*>(workspace);
  float2* partials = totals + s.channels;
  const int64_t per_part = part_rows(s.rows), parts = ceil_div(s.rows, per_part);
  const float share = s.training ? 1.0f / static_cast<float>(s.rows) : 0.0f;
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    const bool wide = packed<T>(s, a.x, a.dy, a.dx);
    const Whole whole{s.rows * s.channels, s.channels, s.float_parameters, s.relu, wide};
    if (wide)
      gradient_sums_kernel<T, kPack<T>>
          <<<part_grid(s, kPack<T>), dim3(32, kDown), 0, stream>>>(a, whole, s.rows, per_part, partials);
    else
      gradient_sums_kernel<T, 1>
          <<<part_grid(s, 1), dim3(32, kDown), 0, stream>>>(a, whole, s.rows, per_part, partials);
    gradient_totals_kernel<T>
        <<<blocks_for(s.channels, 128), 128, 0, stream>>>(a, whole, partials, parts, totals);
    gradient_kernel<T><<<whole_grid<T>(whole), 256, 0, stream>>>(a, whole, totals, share);
  });
  require_launched("channel_norm_grad");
}

}  // namespace lockstep::cuda
