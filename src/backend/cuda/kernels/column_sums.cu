#include "backend/cuda/kernels/column_sums.h"
#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/sums.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kSplits = 8;
constexpr int64_t kPartElements = 8192;  // of one row, where the reduced axis is the last
constexpr int64_t kMostParts = 256;      // of a column
constexpr int64_t kLeastPartRows = 32;

template <typename T>
__global__ void sum_partials_kernel(const float* partials, int64_t parts, int64_t stride, int64_t columns,
                                    float scale, T* out) {
  __shared__ float sums[kSplits][32];
  const int64_t column = int64_t{blockIdx.x} * 32 + threadIdx.x;
  partials += int64_t{blockIdx.y} * parts * stride;
  out += int64_t{blockIdx.y} * columns;
  float sum = 0;
  if (column < columns)
#pragma unroll 8
    for (int64_t r = threadIdx.y; r < parts; r += kSplits) sum += partials[r * stride + column];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
#pragma unroll
  for (int s = 1; s < kSplits; ++s) sum += sums[s][threadIdx.x];
  out[column] = from_float<T>(sum * scale);
}

void sum_partials_of(cudaStream_t stream, const float* partials, int64_t outer, int64_t parts, int64_t stride,
                     int64_t columns, float scale, DType out_dtype, void* out) {
  const dim3 grid(blocks_for(columns, 32, INT32_MAX), static_cast<unsigned>(outer));
  with_storage(out_dtype, [&](auto zero) {
    using T = decltype(zero);
    sum_partials_kernel<<<grid, dim3(32, kSplits), 0, stream>>>(partials, parts, stride, columns, scale,
                                                                static_cast<T*>(out));
  });
  require_launched("sum_partials");
}

// One block per part of a row.
template <typename T>
__global__ void __launch_bounds__(256)
    row_parts_kernel(const T* x, int64_t length, int64_t parts, bool packed, float* partials) {
  const int64_t row = blockIdx.x / parts, part = blockIdx.x % parts;
  const int64_t begin = part * kPartElements, end = min(length, begin + kPartElements);
  const T* p = x + row * length;
  float sum = 0;
  if (packed) {
    for (int64_t i = begin + threadIdx.x * kPack<T>; i < end; i += 256 * kPack<T>) {
      const Pack<T> pack = load_pack(p + i);
#pragma unroll
      for (int k = 0; k < kPack<T>; ++k) sum += to_float(pack.v[k]);
    }
  } else {
    for (int64_t i = begin + threadIdx.x; i < end; i += 256) sum += to_float(p[i]);
  }
  sum = block_all<256>(sum);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

// Rows summed by a chain of parts: one thread per row is enough, parts are few.
template <typename T>
__global__ void add_row_parts_kernel(const float* partials, int64_t rows, int64_t parts, float scale,
                                     T* out) {
  const int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += partials[row * parts + part];
  out[row] = from_float<T>(sum * scale);
}

// A very long row: its parts again by one block, in a fixed pattern.
template <typename T>
__global__ void __launch_bounds__(1024)
    add_many_parts_kernel(const float* partials, int64_t parts, float scale, T* out) {
  float sum = 0;
  for (int64_t i = threadIdx.x; i < parts; i += 1024) sum += partials[blockIdx.x * parts + i];
  sum = block_all<1024>(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = from_float<T>(sum * scale);
}

int64_t part_rows(int64_t reduced) {
  const int64_t even = ceil_div(reduced, kMostParts);
  return even < kLeastPartRows ? kLeastPartRows : even;
}

// 32 threads across columns (a pack each where possible), 8 down the rows of the part.
template <typename T, int kWidth>
__global__ void __launch_bounds__(256)
    column_parts_kernel(const T* x, ReducedShape s, int64_t rows_per_part, float* partials) {
  __shared__ float sums[kSplits][32 * kWidth + 1];
  const int64_t column = (int64_t{blockIdx.x} * 32 + threadIdx.x) * kWidth;
  const int64_t begin = int64_t{blockIdx.y} * rows_per_part;
  const int64_t end = min(s.reduced, begin + rows_per_part);
  const T* base = x + int64_t{blockIdx.z} * s.reduced * s.inner + column;
  float sum[kWidth] = {};
  if (column < s.inner)
#pragma unroll 4
    for (int64_t r = begin + threadIdx.y; r < end; r += kSplits) {
      const auto pack = *reinterpret_cast<const Pack<T, kWidth>*>(base + r * s.inner);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum[i] += to_float(pack.v[i]);
    }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) sums[threadIdx.y][threadIdx.x * kWidth + i] = sum[i];
  __syncthreads();
  if (threadIdx.y != 0 || column >= s.inner) return;
  float* out = partials + (int64_t{blockIdx.z} * gridDim.y + blockIdx.y) * s.inner + column;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
#pragma unroll
    for (int k = 1; k < kSplits; ++k) sum[i] += sums[k][threadIdx.x * kWidth + i];
    out[i] = sum[i];
  }
}

template <typename T>
void sum_rows(cudaStream_t stream, const ReducedShape& s, const T* x, float scale, DType out_dtype, void* out,
              float* partials) {
  const int64_t parts = ceil_div(s.reduced, kPartElements);
  const bool packed = s.reduced % kPack<T> == 0 && aligned16(x);
  row_parts_kernel<<<static_cast<unsigned>(s.outer * parts), 256, 0, stream>>>(x, s.reduced, parts, packed,
                                                                               partials);
  with_storage(out_dtype, [&](auto zero) {
    using Out = decltype(zero);
    if (parts > 64)
      add_many_parts_kernel<<<static_cast<unsigned>(s.outer), 1024, 0, stream>>>(partials, parts, scale,
                                                                                 static_cast<Out*>(out));
    else
      add_row_parts_kernel<<<blocks_for(s.outer, 256), 256, 0, stream>>>(partials, s.outer, parts, scale,
                                                                         static_cast<Out*>(out));
  });
}

template <typename T>
void sum_columns(cudaStream_t stream, const ReducedShape& s, const T* x, float scale, DType out_dtype,
                 void* out, float* partials) {
  const int64_t per_part = part_rows(s.reduced), parts = ceil_div(s.reduced, per_part);
  const auto grid = [&](int width) {
    return dim3(blocks_for(s.inner, 32 * width, INT32_MAX), static_cast<unsigned>(parts),
                static_cast<unsigned>(s.outer));
  };
  if (s.inner % kPack<T> == 0 && aligned16(x))
    column_parts_kernel<T, kPack<T>>
        <<<grid(kPack<T>), dim3(32, kSplits), 0, stream>>>(x, s, per_part, partials);
  else
    column_parts_kernel<T, 1><<<grid(1), dim3(32, kSplits), 0, stream>>>(x, s, per_part, partials);
  require_launched("sum_axis");
  sum_partials_of(stream, partials, s.outer, parts, s.inner, s.inner, scale, out_dtype, out);
}

__device__ __forceinline__ bool exceeds(float a, float best) { return !isnan(best) && !(a <= best); }

// A warp per result where the axis is the last, else a thread per result with neighbours side by side.
template <typename T, typename Body>
__device__ __forceinline__ void first_largest(const T* x, const ReducedShape& s, const Body& body) {
  if (s.inner == 1) {
    const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= s.outer) return;
    float best = -INFINITY;
    int64_t at = -1;
    for (int64_t i = lane; i < s.reduced; i += 32) {
      const float value = to_float(x[row * s.reduced + i]);
      if (at < 0 || exceeds(value, best)) best = value, at = i;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      const float value = __shfl_xor_sync(kAllLanes, best, distance);
      const int64_t place = __shfl_xor_sync(kAllLanes, at, distance);
      if (place < 0) continue;
      const bool equal = value == best || (isnan(value) && isnan(best));
      if (at < 0 || (equal ? place < at : exceeds(value, best))) best = value, at = place;
    }
    body(row, best, at, lane);
    return;
  }
  const int64_t to = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (to >= s.outer * s.inner) return;
  const T* p = x + (to / s.inner) * s.reduced * s.inner + to % s.inner;
  float best = to_float(p[0]);
  int64_t at = 0;
  for (int64_t i = 1; i < s.reduced; ++i) {
    const float value = to_float(p[i * s.inner]);
    if (exceeds(value, best)) best = value, at = i;
  }
  body(to, best, at, 0);
}

template <typename T>
__global__ void max_kernel(const T* x, ReducedShape s, T* out, int32_t* positions) {
  first_largest(x, s, [&](int64_t to, float best, int64_t at, int lane) {
    if (lane != 0) return;
    if (out != nullptr) out[to] = from_float<T>(best);
    if (positions != nullptr) positions[to] = static_cast<int32_t>(at);
  });
}

template <typename T>
__global__ void max_grad_kernel(const T* x, const T* dy, ReducedShape s, T* dx) {
  first_largest(x, s, [&](int64_t to, float, int64_t at, int lane) {
    const int64_t step = s.inner == 1 ? 32 : 1;
    T* p = dx + (to / s.inner) * s.reduced * s.inner + to % s.inner;
    for (int64_t i = lane; i < s.reduced; i += step) p[i * s.inner] = i == at ? dy[to] : from_float<T>(0.0f);
  });
}

unsigned max_blocks(const ReducedShape& s) {
  return blocks_for(s.inner == 1 ? s.outer * 32 : s.outer * s.inner, 256, INT32_MAX);
}

}  // namespace

void sum_partials(cudaStream_t stream, const float* partials, int64_t parts, int64_t stride, int64_t columns,
                  float scale, DType out_dtype, void* out) {
  sum_partials_of(stream, partials, 1, parts, stride, columns, scale, out_dtype, out);
}

int64_t sum_axis_workspace(const ReducedShape& s) {
  const int64_t parts =
      s.inner == 1 ? ceil_div(s.reduced, kPartElements) : ceil_div(s.reduced, part_rows(s.reduced));
  return s.outer * parts * s.inner * int64_t{sizeof(float)};
}

void sum_axis(cudaStream_t stream, const ReducedShape& shape, DType dtype, const void* x, float scale,
              DType out_dtype, void* out, void* workspace) {
  const int64_t results = shape.outer * shape.inner;
  if (results == 0) return;
  if (shape.reduced == 0)
    return require(cudaMemsetAsync(out, 0, static_cast<size_t>(results * size_of(out_dtype)), stream),
                   "memset");
  auto* partials = static_cast<float*>(workspace);
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* from = static_cast<const T*>(x);
    shape.inner == 1 ? sum_rows(stream, shape, from, scale, out_dtype, out, partials)
                     : sum_columns(stream, shape, from, scale, out_dtype, out, partials);
  });
  require_launched("sum_axis");
}

void max_axis(cudaStream_t stream, const ReducedShape& shape, DType dtype, const void* x, void* out,
              int32_t* positions) {
  if (shape.outer * shape.inner == 0) return;
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    max_kernel<<<max_blocks(shape), 256, 0, stream>>>(static_cast<const T*>(x), shape, static_cast<T*>(out),
                                                      positions);
  });
  require_launched("max_axis");
}

void max_axis_grad(cudaStream_t stream, const ReducedShape& shape, DType dtype, const void* x, const void* dy,
                   void* dx) {
  if (shape.outer * shape.inner == 0) return;
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    max_grad_kernel<<<max_blocks(shape), 256, 0, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(dy), shape, static_cast<T*>(dx));
  });
  require_launched("max_axis_grad");
}

}  // namespace lockstep::cuda
