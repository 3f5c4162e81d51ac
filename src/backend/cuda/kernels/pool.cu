#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/pool.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;

struct Pixel {
  int64_t image, row, column, channel;
  __device__ Pixel(int64_t i, int64_t rows, int64_t columns, int64_t channels)
      : image(i / (rows * columns * channels)),
        row(i / (columns * channels) % rows),
        column(i / channels % columns),
        channel(i % channels) {}
};

__device__ __forceinline__ int64_t clamp_low(int64_t a) { return a < 0 ? 0 : a; }

// body(index of x) for the pixels of the window at an output pixel, in row-major order; the number of them.
template <typename Body>
__device__ __forceinline__ int64_t for_window(const PoolShape& s, const Pixel& out, const Body& body) {
  const int64_t top = out.row * s.stride[0] - s.before[0], left = out.column * s.stride[1] - s.before[1];
  const int64_t bottom = min(s.rows, top + s.kernel[0]), right = min(s.columns, left + s.kernel[1]);
  int64_t seen = 0;
  for (int64_t r = clamp_low(top); r < bottom; ++r)
    for (int64_t c = clamp_low(left); c < right; ++c, ++seen)
      body(((out.image * s.rows + r) * s.columns + c) * s.channels + out.channel);
  return seen;
}

template <typename T>
__device__ __forceinline__ int64_t first_largest(const PoolShape& s, const Pixel& out, const T* x,
                                                 float& best) {
  int64_t at = -1;
  for_window(s, out, [&](int64_t i) {
    const float value = to_float(x[i]);
    if (at < 0 || (!isnan(best) && !(value <= best))) best = value, at = i;
  });
  return at;
}

template <typename T, bool kMax>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(PoolShape s, const T* x, T* y, int32_t* index, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const Pixel out(i, s.out_rows, s.out_columns, s.channels);
  float result = 0;
  if (kMax) {
    const int64_t at = first_largest(s, out, x, result);
    index[i] = static_cast<int32_t>(at / s.channels - out.image * s.rows * s.columns);
  } else {
    const int64_t seen = for_window(s, out, [&](int64_t at) { result += to_float(x[at]); });
    result /= static_cast<float>(s.count_padding ? s.kernel[0] * s.kernel[1] : seen);
  }
  y[i] = from_float<T>(result);
}

template <typename T, bool kMax>
__global__ void __launch_bounds__(kThreads)
    backward_kernel(PoolShape s, const T* dy, const int32_t* index, T* dx, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const Pixel in(i, s.rows, s.columns, s.channels);
  // Windows that cover the pixel: o * stride - before <= at < o * stride - before + kernel.
  const auto first = [](int64_t at, int64_t kernel, int64_t stride) {
    return at < kernel ? int64_t{0} : (at - kernel) / stride + 1;
  };
  const int64_t row = in.row + s.before[0], column = in.column + s.before[1];
  float sum = 0;
  for (int64_t r = first(row, s.kernel[0], s.stride[0]); r < s.out_rows && r * s.stride[0] <= row; ++r)
    for (int64_t c = first(column, s.kernel[1], s.stride[1]); c < s.out_columns && c * s.stride[1] <= column;
         ++c) {
      const int64_t from = ((in.image * s.out_rows + r) * s.out_columns + c) * s.channels + in.channel;
      const Pixel out(from, s.out_rows, s.out_columns, s.channels);
      if (kMax) {
        if (index[from] == in.row * s.columns + in.column) sum += to_float(dy[from]);
      } else {
        const int64_t seen = s.count_padding ? s.kernel[0] * s.kernel[1] : for_window(s, out, [](int64_t) {});
        sum += to_float(dy[from]) / static_cast<float>(seen);
      }
    }
  dx[i] = from_float<T>(sum);
}

template <bool kMax>
void forward(cudaStream_t stream, const PoolShape& s, const void* x, void* y, int32_t* index) {
  const int64_t count = s.images * s.out_rows * s.out_columns * s.channels;
  if (count == 0) return;
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    forward_kernel<T, kMax><<<blocks_for(count, kThreads, INT32_MAX), kThreads, 0, stream>>>(
        s, static_cast<const T*>(x), static_cast<T*>(y), index, count);
  });
  require_launched("pool2d");
}

template <bool kMax>
void backward(cudaStream_t stream, const PoolShape& s, const void* dy, const int32_t* index, void* dx) {
  const int64_t count = s.images * s.rows * s.columns * s.channels;
  if (count == 0) return;
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    backward_kernel<T, kMax><<<blocks_for(count, kThreads, INT32_MAX), kThreads, 0, stream>>>(
        s, static_cast<const T*>(dy), index, static_cast<T*>(dx), count);
  });
  require_launched("pool2d_grad");
}

}  // namespace

void max_pool2d(cudaStream_t stream, const PoolShape& shape, const void* x, void* y, int32_t* index) {
  forward<true>(stream, shape, x, y, index);
}
void max_pool2d_grad(cudaStream_t stream, const PoolShape& shape, const void* dy, const int32_t* index,
                     void* dx) {
  backward<true>(stream, shape, dy, index, dx);
}
void avg_pool2d(cudaStream_t stream, const PoolShape& shape, const void* x, void* y) {
  forward<false>(stream, shape, x, y, nullptr);
}
void avg_pool2d_grad(cudaStream_t stream, const PoolShape& shape, const void* dy, void* dx) {
  backward<false>(stream, shape, dy, nullptr, dx);
}

}  // namespace lockstep::cuda
