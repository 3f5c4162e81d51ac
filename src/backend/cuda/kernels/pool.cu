// A thread has N channels of one pixel, so that it moves 16 bytes at a time where channels allow. Places are
// counted in 32 bits: divisions of 64 would take longer than the memory.
#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/pool.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;

// One thread's channels of one pixel among [images, rows, columns, groups of N channels].
struct PoolPlace {
  int image, row, column, channel;
  __device__ PoolPlace(uint32_t i, uint32_t rows, uint32_t columns, uint32_t groups, int width) {
    channel = static_cast<int>(i % groups) * width;
    i /= groups;
    column = static_cast<int>(i % columns);
    i /= columns;
    row = static_cast<int>(i % rows);
    image = static_cast<int>(i / rows);
  }
};

// The pixels of the window at an output pixel.
struct WindowPixels {
  int top, left, bottom, right;
  __device__ WindowPixels(const PoolShape& s, int row, int column) {
    const int first_row = row * static_cast<int>(s.stride[0]) - static_cast<int>(s.before[0]);
    const int first_column = column * static_cast<int>(s.stride[1]) - static_cast<int>(s.before[1]);
    top = max(first_row, 0);
    left = max(first_column, 0);
    bottom = min(static_cast<int>(s.rows), first_row + static_cast<int>(s.kernel[0]));
    right = min(static_cast<int>(s.columns), first_column + static_cast<int>(s.kernel[1]));
  }
  __device__ int count() const { return (bottom - top) * (right - left); }
};

template <typename T, int N>
__device__ __forceinline__ Pack<T, N> load(const T* p) {
  return *reinterpret_cast<const Pack<T, N>*>(p);
}

__device__ __forceinline__ float divisor(const PoolShape& s, const WindowPixels& window) {
  return static_cast<float>(s.count_padding ? static_cast<int>(s.kernel[0] * s.kernel[1]) : window.count());
}

template <typename T, int N, bool kMax>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(PoolShape s, const T* x, T* y, int32_t* index, uint32_t count) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const PoolPlace out(i, static_cast<uint32_t>(s.out_rows), static_cast<uint32_t>(s.out_columns),
                      static_cast<uint32_t>(s.channels / N), N);
  const WindowPixels window(s, out.row, out.column);
  const T* image = x + int64_t{out.image} * s.rows * s.columns * s.channels + out.channel;
  float result[N] = {};
  Pack<int32_t, N> at;
#pragma unroll
  for (int k = 0; k < N; ++k) at.v[k] = -1;
  for (int r = window.top; r < window.bottom; ++r)
    for (int c = window.left; c < window.right; ++c) {
      const int pixel = r * static_cast<int>(s.columns) + c;
      const Pack<T, N> pack = load<T, N>(image + pixel * s.channels);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float value = to_float(pack.v[k]);
        if (!kMax)
          result[k] += value;
        else if (at.v[k] < 0 || (!isnan(result[k]) && !(value <= result[k])))
          result[k] = value, at.v[k] = pixel;
      }
    }
  Pack<T, N> pack;
#pragma unroll
  for (int k = 0; k < N; ++k) pack.v[k] = from_float<T>(kMax ? result[k] : result[k] / divisor(s, window));
  const int64_t to = int64_t{i} * N;
  *reinterpret_cast<Pack<T, N>*>(y + to) = pack;
  if (kMax)
#pragma unroll
    for (int k = 0; k < N; ++k) index[to + k] = at.v[k];
}

template <typename T, int N, bool kMax>
__global__ void __launch_bounds__(kThreads)
    backward_kernel(PoolShape s, const T* dy, const int32_t* index, T* dx, uint32_t count) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const PoolPlace in(i, static_cast<uint32_t>(s.rows), static_cast<uint32_t>(s.columns),
                     static_cast<uint32_t>(s.channels / N), N);
  // Windows that cover the pixel: o * stride - before <= at < o * stride - before + kernel.
  const auto first = [](int at, int kernel, int stride) {
    return at < kernel ? 0 : (at - kernel) / stride + 1;
  };
  const int row = in.row + static_cast<int>(s.before[0]), column = in.column + static_cast<int>(s.before[1]);
  const int strides[2] = {static_cast<int>(s.stride[0]), static_cast<int>(s.stride[1])};
  const int pixel = in.row * static_cast<int>(s.columns) + in.column;
  float sum[N] = {};
  for (int r = first(row, static_cast<int>(s.kernel[0]), strides[0]); r < s.out_rows && r * strides[0] <= row;
       ++r)
    for (int c = first(column, static_cast<int>(s.kernel[1]), strides[1]);
         c < s.out_columns && c * strides[1] <= column; ++c) {
      const int64_t from =
          ((int64_t{in.image} * s.out_rows + r) * s.out_columns + c) * s.channels + in.channel;
      const Pack<T, N> pack = load<T, N>(dy + from);
      const float share = kMax ? 1.0f : divisor(s, WindowPixels(s, r, c));
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float value = to_float(pack.v[k]);
        if (!kMax)
          sum[k] += value / share;
        else if (index[from + k] == pixel)
          sum[k] += value;
      }
    }
  Pack<T, N> pack;
#pragma unroll
  for (int k = 0; k < N; ++k) pack.v[k] = from_float<T>(sum[k]);
  *reinterpret_cast<Pack<T, N>*>(dx + int64_t{i} * N) = pack;
}

// Calls body.operator()<T, N>(places) with as many channels at a time as the layout allows.
template <typename Body>
void with_places(const PoolShape& s, int64_t pixels, const void* a, const void* b, const Body& body) {
  const int64_t count = pixels * s.channels;
  if (count == 0) return;
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    const bool wide = s.channels % kPack<T> == 0 && aligned16(a) && aligned16(b);
    const int64_t places = wide ? count / kPack<T> : count;
    require_that(places < INT32_MAX, "a pool over fewer than 2^31 places");
    if (wide)
      body.template operator()<T, kPack<T>>(static_cast<uint32_t>(places));
    else
      body.template operator()<T, 1>(static_cast<uint32_t>(places));
  });
}

template <bool kMax>
void forward(cudaStream_t stream, const PoolShape& s, const void* x, void* y, int32_t* index) {
  with_places(s, s.images * s.out_rows * s.out_columns, x, y, [&]<typename T, int N>(uint32_t places) {
    forward_kernel<T, N, kMax><<<blocks_for(places, kThreads, INT32_MAX), kThreads, 0, stream>>>(
        s, static_cast<const T*>(x), static_cast<T*>(y), index, places);
  });
  require_launched("pool2d");
}

template <bool kMax>
void backward(cudaStream_t stream, const PoolShape& s, const void* dy, const int32_t* index, void* dx) {
  with_places(s, s.images * s.rows * s.columns, dy, dx, [&]<typename T, int N>(uint32_t places) {
    backward_kernel<T, N, kMax><<<blocks_for(places, kThreads, INT32_MAX), kThreads, 0, stream>>>(
        s, static_cast<const T*>(dy), index, static_cast<T*>(dx), places);
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
