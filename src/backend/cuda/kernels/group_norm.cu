#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/group_norm.h"
#include "backend/cuda/kernels/sums.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;

// body(index of the element, channel) for the elements of the block's group that are this thread's.
template <typename Body>
__device__ __forceinline__ void for_group(const GroupNormShape& s, const Body& body) {
  const int64_t sample = blockIdx.x / s.groups, group = blockIdx.x % s.groups;
  const int64_t width = s.channels / s.groups;
  for (int64_t i = threadIdx.x; i < s.pixels * width; i += kThreads) {
    const int64_t channel = group * width + i % width;
    body((sample * s.pixels + i / width) * s.channels + channel, channel);
  }
}

__device__ __forceinline__ double group_count(const GroupNormShape& s) {
  return static_cast<double>(s.pixels * (s.channels / s.groups));
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(GroupNormShape s, const T* x, const void* weight, const void* bias, double epsilon, T* y,
                   float* means, float* rstds) {
  double sum = 0;
  for_group(s, [&](int64_t i, int64_t) { sum += to_float(x[i]); });
  const double mean = block_all<kThreads>(sum) / group_count(s);
  double squares = 0;
  for_group(s, [&](int64_t i, int64_t) {
    const double d = to_float(x[i]) - mean;
    squares = fma(d, d, squares);
  });
  const double rstd = 1.0 / sqrt(block_all<kThreads>(squares) / group_count(s) + epsilon);
  if (threadIdx.x == 0) {
    means[blockIdx.x] = static_cast<float>(mean);
    rstds[blockIdx.x] = static_cast<float>(rstd);
  }
  const auto m = static_cast<float>(mean), r = static_cast<float>(rstd);
  for_group(s, [&](int64_t i, int64_t channel) {
    const float h = (to_float(x[i]) - m) * r;
    y[i] = from_float<T>(fmaf(h, load_parameter<T>(weight, s.float_parameters, channel),
                              load_parameter<T>(bias, s.float_parameters, channel)));
  });
}

// A thread per sample and channel: sums of dy h and of dy over its pixels, in order.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    channel_sums_kernel(GroupNormShape s, const T* dy, const T* x, const float* means, const float* rstds,
                        float2* sums) {
  const int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= s.samples * s.channels) return;
  const int64_t sample = at / s.channels, channel = at % s.channels;
  const int64_t group = sample * s.groups + channel / (s.channels / s.groups);
  const float mean = means[group], rstd = rstds[group];
  float2 sum{0, 0};
  for (int64_t p = 0; p < s.pixels; ++p) {
    const int64_t i = (sample * s.pixels + p) * s.channels + channel;
    const float d = to_float(dy[i]);
    sum = {fmaf(d, (to_float(x[i]) - mean) * rstd, sum.x), sum.y + d};
  }
  sums[at] = sum;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    parameters_kernel(GroupNormShape s, const float2* sums, void* dweight, void* dbias) {
  const int64_t channel = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (channel >= s.channels) return;
  double w = 0, b = 0;
  for (int64_t sample = 0; sample < s.samples; ++sample) {
    w += sums[sample * s.channels + channel].x;
    b += sums[sample * s.channels + channel].y;
  }
  store_parameter<T>(dweight, s.float_parameters, channel, static_cast<float>(w));
  store_parameter<T>(dbias, s.float_parameters, channel, static_cast<float>(b));
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    backward_kernel(GroupNormShape s, const T* dy, const T* x, const void* weight, const float* means,
                    const float* rstds, const float2* sums, T* dx) {
  const int64_t sample = blockIdx.x / s.groups, group = blockIdx.x % s.groups, width = s.channels / s.groups;
  double gh = 0, g = 0;
  for (int64_t c = group * width; c < (group + 1) * width; ++c) {
    const double w = load_parameter<T>(weight, s.float_parameters, c);
    gh += w * sums[sample * s.channels + c].x;
    g += w * sums[sample * s.channels + c].y;
  }
  const auto mean_gh = static_cast<float>(gh / group_count(s)),
             mean_g = static_cast<float>(g / group_count(s));
  const float mean = means[blockIdx.x], rstd = rstds[blockIdx.x];
  for_group(s, [&](int64_t i, int64_t channel) {
    const float h = (to_float(x[i]) - mean) * rstd;
    const float d = to_float(dy[i]) * load_parameter<T>(weight, s.float_parameters, channel);
    dx[i] = from_float<T>(rstd * (d - mean_g - h * mean_gh));
  });
}

}  // namespace

void group_norm(cudaStream_t stream, const GroupNormShape& s, const void* x, const void* weight,
                const void* bias, double epsilon, void* y, float* mean, float* rstd) {
  if (s.samples * s.pixels * s.channels == 0) return;
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    forward_kernel<T><<<static_cast<unsigned>(s.samples * s.groups), kThreads, 0, stream>>>(
        s, static_cast<const T*>(x), weight, bias, epsilon, static_cast<T*>(y), mean, rstd);
  });
  require_launched("group_norm");
}

int64_t group_norm_grad_workspace(const GroupNormShape& s) {
  return s.samples * s.channels * int64_t{sizeof(float2)};
}

void group_norm_grad(cudaStream_t stream, const GroupNormShape& s, const void* dy, const void* x,
                     const void* weight, const float* mean, const float* rstd, void* dx, void* dweight,
                     void* dbias, void* workspace) {
  if (s.channels == 0) return;
  auto* sums = static_cast<float2*>(workspace);
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* gradient = static_cast<const T*>(dy);
    const auto* from = static_cast<const T*>(x);
    if (s.samples > 0)
      channel_sums_kernel<T>
          <<<blocks_for(s.samples * s.channels, kThreads, INT32_MAX), kThreads, 0, stream>>>(
              s, gradient, from, mean, rstd, sums);
    parameters_kernel<T><<<blocks_for(s.channels, kThreads), kThreads, 0, stream>>>(s, sums, dweight, dbias);
    if (s.samples > 0)
      backward_kernel<T><<<static_cast<unsigned>(s.samples * s.groups), kThreads, 0, stream>>>(
          s, gradient, from, weight, mean, rstd, sums, static_cast<T*>(dx));
  });
  require_launched("group_norm_grad");
}

}  // namespace lockstep::cuda
