#include "backend/cuda/kernels/column_sums.h"
#include "backend/cuda/kernels/convolution.h"
#include "backend/cuda/kernels/element.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kMostParts = 64;
constexpr int64_t kLeastPixels = 256;

struct PixelPlace {
  int64_t image, row, column, channel;
  __device__ PixelPlace(int64_t i, int64_t rows, int64_t columns, int64_t channels)
      : image(i / (rows * columns * channels)),
        row(i / (columns * channels) % rows),
        column(i / channels % columns),
        channel(i % channels) {}
};

__device__ __forceinline__ bool inside(int64_t at, int64_t extent) { return at >= 0 && at < extent; }

template <typename T>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(ConvolutionShape s, const T* x, const T* filter, T* y, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const PixelPlace out(i, s.rows.output, s.columns.output, s.outputs);
  const int64_t width = s.channels / s.groups, group = out.channel / (s.outputs / s.groups);
  const T* taps = filter + out.channel * s.rows.kernel * s.columns.kernel * width;
  float sum = 0;
  for (int64_t kr = 0; kr < s.rows.kernel; ++kr)
    for (int64_t kc = 0; kc < s.columns.kernel; ++kc, taps += width) {
      const int64_t r = out.row * s.rows.stride - s.rows.before + kr * s.rows.dilation;
      const int64_t c = out.column * s.columns.stride - s.columns.before + kc * s.columns.dilation;
      if (!inside(r, s.rows.input) || !inside(c, s.columns.input)) continue;
      const T* pixel =
          x + ((out.image * s.rows.input + r) * s.columns.input + c) * s.channels + group * width;
      for (int64_t k = 0; k < width; ++k) sum = fmaf(to_float(pixel[k]), to_float(taps[k]), sum);
    }
  y[i] = from_float<T>(sum);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    input_kernel(ConvolutionShape s, const T* dy, const T* filter, T* dx, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const PixelPlace in(i, s.rows.input, s.columns.input, s.channels);
  const int64_t width = s.channels / s.groups, group = in.channel / width, per_group = s.outputs / s.groups;
  const int64_t filter_step = s.rows.kernel * s.columns.kernel * width;
  float sum = 0;
  for (int64_t kr = 0; kr < s.rows.kernel; ++kr)
    for (int64_t kc = 0; kc < s.columns.kernel; ++kc) {
      const int64_t r = in.row + s.rows.before - kr * s.rows.dilation;
      const int64_t c = in.column + s.columns.before - kc * s.columns.dilation;
      if (r < 0 || c < 0 || r % s.rows.stride != 0 || c % s.columns.stride != 0) continue;
      const int64_t row = r / s.rows.stride, column = c / s.columns.stride;
      if (row >= s.rows.output || column >= s.columns.output) continue;
      const T* pixel = dy + ((in.image * s.rows.output + row) * s.columns.output + column) * s.outputs;
      const T* tap = filter + (kr * s.columns.kernel + kc) * width + in.channel % width;
      for (int64_t o = group * per_group; o < (group + 1) * per_group; ++o)
        sum = fmaf(to_float(pixel[o]), to_float(tap[o * filter_step]), sum);
    }
  dx[i] = from_float<T>(sum);
}

int64_t part_pixels(const ConvolutionShape& s) {
  const int64_t pixels = s.batch * s.rows.output * s.columns.output;
  const int64_t even = ceil_div(pixels, kMostParts);
  return even < kLeastPixels ? kLeastPixels : even;
}
int64_t parts_of(const ConvolutionShape& s) {
  return ceil_div(s.batch * s.rows.output * s.columns.output, part_pixels(s));
}
int64_t filter_count(const ConvolutionShape& s) {
  return s.outputs * s.rows.kernel * s.columns.kernel * (s.channels / s.groups);
}

// A thread per element of the filter and part of the output pixels.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    filter_kernel(ConvolutionShape s, const T* x, const T* dy, int64_t pixels_per_part, int64_t count,
                  float* partials) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const int64_t width = s.channels / s.groups;
  const PixelPlace tap(i, s.rows.kernel, s.columns.kernel, width);  // image: the filter
  const int64_t channel = tap.image / (s.outputs / s.groups) * width + tap.channel;
  const int64_t pixels = s.batch * s.rows.output * s.columns.output;
  const int64_t begin = int64_t{blockIdx.y} * pixels_per_part, end = min(pixels, begin + pixels_per_part);
  float sum = 0;
  for (int64_t p = begin; p < end; ++p) {
    const PixelPlace out(p, s.rows.output, s.columns.output, 1);
    const int64_t r = out.row * s.rows.stride - s.rows.before + tap.row * s.rows.dilation;
    const int64_t c = out.column * s.columns.stride - s.columns.before + tap.column * s.columns.dilation;
    if (!inside(r, s.rows.input) || !inside(c, s.columns.input)) continue;
    sum =
        fmaf(to_float(dy[p * s.outputs + tap.image]),
             to_float(x[((out.image * s.rows.input + r) * s.columns.input + c) * s.channels + channel]), sum);
  }
  partials[int64_t{blockIdx.y} * count + i] = sum;
}

}  // namespace

void convolution(cudaStream_t stream, const ConvolutionShape& s, const void* x, const void* filter, void* y) {
  const int64_t count = s.batch * s.rows.output * s.columns.output * s.outputs;
  if (count == 0) return;
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    forward_kernel<<<blocks_for(count, kThreads, INT32_MAX), kThreads, 0, stream>>>(
        s, static_cast<const T*>(x), static_cast<const T*>(filter), static_cast<T*>(y), count);
  });
  require_launched("convolution");
}

void convolution_grad_input(cudaStream_t stream, const ConvolutionShape& s, const void* dy,
                            const void* filter, void* dx) {
  const int64_t count = s.batch * s.rows.input * s.columns.input * s.channels;
  if (count == 0) return;
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    input_kernel<<<blocks_for(count, kThreads, INT32_MAX), kThreads, 0, stream>>>(
        s, static_cast<const T*>(dy), static_cast<const T*>(filter), static_cast<T*>(dx), count);
  });
  require_launched("convolution_grad_input");
}

int64_t convolution_grad_filter_workspace(const ConvolutionShape& s) {
  return parts_of(s) * filter_count(s) * int64_t{sizeof(float)};
}

void convolution_grad_filter(cudaStream_t stream, const ConvolutionShape& s, const void* x, const void* dy,
                             void* dfilter, void* workspace) {
  const int64_t count = filter_count(s), parts = parts_of(s);
  if (count == 0) return;
  auto* partials = static_cast<float*>(workspace);
  if (parts > 0)
    with_storage(s.dtype, [&](auto zero) {
      using T = decltype(zero);
      const dim3 grid(blocks_for(count, kThreads, INT32_MAX), static_cast<unsigned>(parts));
      filter_kernel<<<grid, kThreads, 0, stream>>>(s, static_cast<const T*>(x), static_cast<const T*>(dy),
                                                   part_pixels(s), count, partials);
    });
  require_launched("convolution_grad_filter");
  sum_partials(stream, partials, parts, count, count, 1.0f, s.filter_dtype, dfilter);
}

}  // namespace lockstep::cuda
