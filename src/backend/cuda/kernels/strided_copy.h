// strided_copy: moves elements between two strided views of one shape. Broadcast, transpose, slice, concat,
// split and pad are this with other strides. Views keep the order of axes of the result.
#pragma once
#include <span>

#include "backend/cuda/kernels/launch.h"

namespace lockstep::cuda {

// Elements of 1, 2, 4 or 8 bytes. `to` must not overlap `from`.
void strided_copy(cudaStream_t stream, int64_t element_bytes, std::span<const int64_t> extents,
                  const void* from, std::span<const int64_t> from_strides, void* to,
                  std::span<const int64_t> to_strides);

// Sets `count` elements of 1, 2, 4 or 8 bytes to one pattern, given in the low bytes of `bits`.
void fill(cudaStream_t stream, int64_t element_bytes, uint64_t bits, void* to, int64_t count);

// out[i] = i / inner % extent, as dtype f32, i32 or i64.
void iota(cudaStream_t stream, DType dtype, int64_t inner, int64_t extent, void* out, int64_t count);

// What lies strictly below the diagonal of `matrices` n x n matrices, row by row, and the inverse with zeros
// elsewhere.
void lower_triangle(cudaStream_t stream, int64_t element_bytes, int64_t matrices, int64_t n, const void* x,
                    void* y);
void lower_triangle_grad(cudaStream_t stream, int64_t element_bytes, int64_t matrices, int64_t n,
                         const void* dy, void* dx);

}  // namespace lockstep::cuda
