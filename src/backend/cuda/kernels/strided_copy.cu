// Axes that lie together on both sides are merged first. Then one of three kernels: 16 bytes at a time where
// the last axis is contiguous on both sides, 32 x 32 tiles through shared memory where it is contiguous on
// different axes, and element by element otherwise.
#include <algorithm>
#include <vector>

#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/strided_copy.h"

namespace lockstep::cuda {
namespace {

constexpr int kMostAxes = 8;
constexpr int kThreads = 256;
constexpr int kTile = 32;

struct Walk {
  int axes;
  int64_t extent[kMostAxes];
  int64_t from[kMostAxes];
  int64_t to[kMostAxes];
};

__device__ __forceinline__ void offsets(const Walk& w, int64_t index, int64_t& from, int64_t& to) {
  from = to = 0;
#pragma unroll
  for (int axis = kMostAxes - 1; axis >= 0; --axis) {
    if (axis >= w.axes) continue;
    const int64_t rest = index / w.extent[axis], at = index - rest * w.extent[axis];
    from += at * w.from[axis];
    to += at * w.to[axis];
    index = rest;
  }
}

template <typename E>
__global__ void __launch_bounds__(kThreads) elements_kernel(Walk walk, const E* from, E* to, int64_t count) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * kThreads) {
    int64_t a, b;
    offsets(walk, i, a, b);
    to[b] = from[a];
  }
}

// The last two axes of the walk: [.., rows, columns]; from is contiguous along rows, to along columns.
template <typename E>
__global__ void __launch_bounds__(kThreads)
    tiles_kernel(Walk outer, int64_t rows, int64_t columns, int64_t from_column_stride, int64_t to_row_stride,
                 const E* from, E* to) {
  __shared__ E tile[kTile][kTile + 1];
  const int64_t tiles_across = (columns + kTile - 1) / kTile;
  const int64_t row = int64_t{blockIdx.x} / tiles_across * kTile,
                column = int64_t{blockIdx.x} % tiles_across * kTile;
  int64_t a, b;
  offsets(outer, blockIdx.y, a, b);
  const int x = threadIdx.x % kTile;
  for (int y = threadIdx.x / kTile; y < kTile; y += kThreads / kTile)
    if (row + x < rows && column + y < columns)
      tile[y][x] = from[a + (column + y) * from_column_stride + row + x];
  __syncthreads();
  for (int y = threadIdx.x / kTile; y < kTile; y += kThreads / kTile)
    if (row + y < rows && column + x < columns) to[b + (row + y) * to_row_stride + column + x] = tile[x][y];
}

Walk merged(std::span<const int64_t> extents, std::span<const int64_t> from, std::span<const int64_t> to) {
  require_that(extents.size() <= kMostAxes, "at most 8 axes");
  Walk walk{};
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1) continue;
    const int last = walk.axes - 1;
    if (last >= 0 && walk.from[last] == from[i] * extents[i] && walk.to[last] == to[i] * extents[i]) {
      walk.extent[last] *= extents[i];
      walk.from[last] = from[i];
      walk.to[last] = to[i];
      continue;
    }
    walk.extent[walk.axes] = extents[i];
    walk.from[walk.axes] = from[i];
    walk.to[walk.axes++] = to[i];
  }
  if (walk.axes == 0) walk = Walk{1, {1}, {1}, {1}};
  return walk;
}

// Moves the axis along which `from` is contiguous next to the last one. -1 where there is none.
int contiguous_axis(const Walk& walk, const int64_t (&strides)[kMostAxes]) {
  for (int axis = 0; axis < walk.axes; ++axis)
    if (strides[axis] == 1) return axis;
  return -1;
}

template <typename E>
void run(cudaStream_t stream, Walk walk, const void* from, void* to) {
  const auto* source = static_cast<const E*>(from);
  auto* target = static_cast<E*>(to);
  int64_t count = 1;
  for (int axis = 0; axis < walk.axes; ++axis) count *= walk.extent[axis];
  const int last = walk.axes - 1;
  const int source_axis = contiguous_axis(walk, walk.from);
  if (walk.to[last] == 1 && source_axis >= 0 && source_axis != last && walk.extent[source_axis] >= 16 &&
      walk.extent[last] >= 16) {
    Walk outer{};
    int64_t slices = 1;
    for (int axis = 0; axis < last; ++axis) {
      if (axis == source_axis) continue;
      outer.extent[outer.axes] = walk.extent[axis];
      outer.from[outer.axes] = walk.from[axis];
      outer.to[outer.axes++] = walk.to[axis];
      slices *= walk.extent[axis];
    }
    const int64_t rows = walk.extent[source_axis], columns = walk.extent[last];
    const int64_t tiles = ceil_div(rows, kTile) * ceil_div(columns, kTile);
    if (slices <= 65535 && tiles <= INT32_MAX) {
      tiles_kernel<<<dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(slices)), kThreads, 0,
                     stream>>>(outer, rows, columns, walk.from[last], walk.to[source_axis], source, target);
      return;
    }
  }
  elements_kernel<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(walk, source, target, count);
}

// Sees runs of contiguous elements as fewer, larger ones of up to 16 bytes.
int64_t widen(Walk& walk, int64_t bytes, const void* from, const void* to) {
  const int last = walk.axes - 1;
  if (walk.from[last] != 1 || walk.to[last] != 1) return bytes;
  for (int64_t wide = 16; wide > bytes; wide /= 2) {
    const int64_t ratio = wide / bytes;
    bool fits = walk.extent[last] % ratio == 0 && reinterpret_cast<uintptr_t>(from) % wide == 0 &&
                reinterpret_cast<uintptr_t>(to) % wide == 0;
    for (int axis = 0; axis < last; ++axis)
      fits = fits && walk.from[axis] % ratio == 0 && walk.to[axis] % ratio == 0;
    if (!fits) continue;
    walk.extent[last] /= ratio;
    for (int axis = 0; axis < last; ++axis) walk.from[axis] /= ratio, walk.to[axis] /= ratio;
    return wide;
  }
  return bytes;
}

template <typename Body>
void with_element(int64_t bytes, const Body& body) {
  switch (bytes) {
    case 1: return body(uint8_t{});
    case 2: return body(uint16_t{});
    case 4: return body(uint32_t{});
    case 8: return body(uint64_t{});
    case 16: return body(uint4{});
    default: require_that(false, "elements of 1, 2, 4, 8 or 16 bytes");
  }
}

template <typename E>
__global__ void __launch_bounds__(kThreads) fill_kernel(E value, E* to, int64_t count) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * kThreads)
    to[i] = value;
}

template <typename E>
__global__ void __launch_bounds__(kThreads)
    iota_kernel(int64_t inner, int64_t extent, E* out, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) out[i] = static_cast<E>(i / inner % extent);
}

// One thread per element of the square.
template <typename E, bool kGrad>
__global__ void __launch_bounds__(kThreads) triangle_kernel(int64_t n, const E* from, E* to, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const int64_t matrix = i / (n * n), row = i / n % n, column = i % n;
  const int64_t packed = matrix * (n * (n - 1) / 2) + row * (row - 1) / 2 + column;
  if (kGrad)
    to[i] = column < row ? from[packed] : E{};
  else if (column < row)
    to[packed] = from[i];
}

}  // namespace

void strided_copy(cudaStream_t stream, int64_t element_bytes, std::span<const int64_t> extents,
                  const void* from, std::span<const int64_t> from_strides, void* to,
                  std::span<const int64_t> to_strides) {
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return;
  Walk walk = merged(extents, from_strides, to_strides);
  with_element(widen(walk, element_bytes, from, to),
               [&](auto element) { run<decltype(element)>(stream, walk, from, to); });
  require_launched("strided_copy");
}

void fill(cudaStream_t stream, int64_t element_bytes, uint64_t bits, void* to, int64_t count) {
  if (count == 0) return;
  switch (element_bytes) {
    case 1:
      fill_kernel<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(static_cast<uint8_t>(bits),
                                                                        static_cast<uint8_t*>(to), count);
      break;
    case 2:
      fill_kernel<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(static_cast<uint16_t>(bits),
                                                                        static_cast<uint16_t*>(to), count);
      break;
    case 4:
      fill_kernel<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(static_cast<uint32_t>(bits),
                                                                        static_cast<uint32_t*>(to), count);
      break;
    default:
      fill_kernel<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(bits, static_cast<uint64_t*>(to),
                                                                        count);
  }
  require_launched("fill");
}

void iota(cudaStream_t stream, DType dtype, int64_t inner, int64_t extent, void* out, int64_t count) {
  if (count == 0) return;
  const unsigned blocks = blocks_for(count, kThreads, INT32_MAX);
  switch (dtype) {
    case DType::kF32:
      iota_kernel<<<blocks, kThreads, 0, stream>>>(inner, extent, static_cast<float*>(out), count);
      break;
    case DType::kI32:
      iota_kernel<<<blocks, kThreads, 0, stream>>>(inner, extent, static_cast<int32_t*>(out), count);
      break;
    case DType::kI64:
      iota_kernel<<<blocks, kThreads, 0, stream>>>(inner, extent, static_cast<int64_t*>(out), count);
      break;
    default: throw_unsupported(dtype);
  }
  require_launched("iota");
}

void lower_triangle(cudaStream_t stream, int64_t element_bytes, int64_t matrices, int64_t n, const void* x,
                    void* y) {
  const int64_t count = matrices * n * n;
  if (count == 0) return;
  with_element(element_bytes, [&](auto element) {
    using E = decltype(element);
    triangle_kernel<E, false><<<blocks_for(count, kThreads, INT32_MAX), kThreads, 0, stream>>>(
        n, static_cast<const E*>(x), static_cast<E*>(y), count);
  });
  require_launched("lower_triangle");
}

void lower_triangle_grad(cudaStream_t stream, int64_t element_bytes, int64_t matrices, int64_t n,
                         const void* dy, void* dx) {
  const int64_t count = matrices * n * n;
  if (count == 0) return;
  with_element(element_bytes, [&](auto element) {
    using E = decltype(element);
    triangle_kernel<E, true><<<blocks_for(count, kThreads, INT32_MAX), kThreads, 0, stream>>>(
        n, static_cast<const E*>(dy), static_cast<E*>(dx), count);
  });
  require_launched("lower_triangle_grad");
}

}  // namespace lockstep::cuda
