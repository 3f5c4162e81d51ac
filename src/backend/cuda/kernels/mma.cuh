// Products of 16 x 8 x 16 on tensor cores with 16-bit operands and fp32 sums, and how their operands come out
// of shared memory. Fragments are those of mma.sync.m16n8k16 (PTX ISA, "Matrix Fragments for mma.m16n8k16"):
// with g = lane / 4 and t = lane % 4, a thread holds of the 16 x 8 result the elements (g, 2t), (g, 2t+1),
// (g+8, 2t), (g+8, 2t+1).
#pragma once
#include "backend/cuda/kernels/element.cuh"

namespace lockstep::cuda {

__device__ __forceinline__ void mma_16816(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                          bf16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_16816(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                          f16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <typename T>
__device__ __forceinline__ uint32_t shared_address(const T* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Two 16-bit values in one register, the first in the low half.
template <typename T>
__device__ __forceinline__ uint32_t pack2(float low, float high) {
  Pack<T, 2> pair{from_float<T>(low), from_float<T>(high)};
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// Rows of kWidth elements of T in shared memory, 16 bytes apart in banks from one row to the next.
template <typename T, int kWidth>
struct Tile {
  static constexpr int kStride = kWidth + 8;
  T* data;

  __device__ __forceinline__ const T* row(int r, int column) const { return data + r * kStride + column; }

  // The 16 x 16 left operand at (row, column).
  __device__ __forceinline__ void load_a(int row0, int column0, uint32_t (&a)[4]) const {
    const int lane = threadIdx.x % 32;
    const uint32_t address = shared_address(row(row0 + lane % 16, column0 + lane / 16 * 8));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(address));
  }
  // The right operand of a product with this tile transposed: 8 rows from row0 are its columns, 16 columns
  // from column0 its inner axis.
  __device__ __forceinline__ void load_b_rows(int row0, int column0, uint32_t& b0, uint32_t& b1) const {
    const int lane = threadIdx.x % 16;
    const uint32_t address = shared_address(row(row0 + lane % 8, column0 + lane / 8 * 8));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(b0), "=r"(b1)
                 : "r"(address));
  }
  // The right operand of a product with this tile as it is: 16 rows from row0 are its inner axis, 8 columns
  // from column0 its columns.
  __device__ __forceinline__ void load_b(int row0, int column0, uint32_t& b0, uint32_t& b1) const {
    const int lane = threadIdx.x % 16;
    const uint32_t address = shared_address(row(row0 + lane, column0));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(b0), "=r"(b1)
                 : "r"(address));
  }
  // Fills kRows rows from a head that lies in memory with `stride` elements from row to row; what lies beyond
  // `rows` or `width` becomes zero. All kThreads threads of the block take part.
  template <int kRows, int kThreads>
  __device__ __forceinline__ void fill(const T* from, int64_t stride, int rows, int width) const {
    constexpr int kPacks = kWidth / 8;
    for (int i = threadIdx.x; i < kRows * kPacks; i += kThreads) {
      const int r = i / kPacks, column = i % kPacks * 8;
      Pack<T> pack{};
      if (r < rows && column < width) pack = load_pack(from + r * stride + column);
      store_pack(data + r * kStride + column, pack);
    }
  }
};

// The left operand made of the sums of two neighbouring 16 x 8 results, rounded.
template <typename T>
__device__ __forceinline__ void as_operand(const float (&left)[4], const float (&right)[4],
                                           uint32_t (&a)[4]) {
  a[0] = pack2<T>(left[0], left[1]);
  a[1] = pack2<T>(left[2], left[3]);
  a[2] = pack2<T>(right[0], right[1]);
  a[3] = pack2<T>(right[2], right[3]);
}

}  // namespace lockstep::cuda
