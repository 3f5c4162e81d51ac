// Attention on tensor cores (mma.sync), 16-bit heads of up to 128. Four warps of 16 rows each take 64 queries
// (or 64 keys for dk and dv) and walk tiles of the other side through shared memory.
#include "backend/cuda/kernels/attention_kernels.h"
#include "backend/cuda/kernels/attention_mask.cuh"
#include "backend/cuda/kernels/mma.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kRows = 64;     // of the side that stays
constexpr int kKeys = 64;     // of a tile of keys
constexpr int kQueries = 32;  // of a tile of queries
constexpr int kThreads = 128;
constexpr float kLog2E = 1.4426950408889634f;

template <typename T>
__device__ __forceinline__ const T* head_at(const void* p, const HeadLayout& l, int64_t b, int64_t row,
                                            int64_t h) {
  return static_cast<const T*>(p) + b * l.batch + row * l.row + h * l.head;
}

// Sum over the four threads that share a row of a fragment.
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

// c[n] += rows [row0, row0 + 16) of `a` times rows [8 n, 8 n + 8) of `b`, over the width of a head.
template <typename T, int kWidth, int kColumns>
__device__ __forceinline__ void multiply_rows(const Tile<T, kWidth>& a, int row0, const Tile<T, kWidth>& b,
                                              float (&c)[kColumns / 8][4]) {
#pragma unroll
  for (int d = 0; d < kWidth; d += 16) {
    uint32_t left[4];
    a.load_a(row0, d, left);
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
      uint32_t b0, b1;
      b.load_b_rows(n * 8, d, b0, b1);
      mma_16816(c[n], left, b0, b1, T{});
    }
  }
}

// c[n] += p, a 16 x kInner result rounded to T, times the kInner rows of `b`.
template <typename T, int kWidth, int kInner>
__device__ __forceinline__ void multiply_by_rows(const float (&p)[kInner / 8][4], const Tile<T, kWidth>& b,
                                                 float (&c)[kWidth / 8][4]) {
#pragma unroll
  for (int k = 0; k < kInner / 16; ++k) {
    uint32_t left[4];
    as_operand<T>(p[2 * k], p[2 * k + 1], left);
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n) {
      uint32_t b0, b1;
      b.load_b(k * 16, n * 8, b0, b1);
      mma_16816(c[n], left, b0, b1, T{});
    }
  }
}

// Writes the 16 rows that a warp holds.
template <typename T, int kWidth>
__device__ __forceinline__ void store_rows(const float (&c)[kWidth / 8][4], T* head, int64_t stride,
                                           int first, int rows, int width) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < kWidth / 8; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + lane / 4 + half * 8, column = n * 8 + lane % 4 * 2;
      if (row < rows && column < width)
        *reinterpret_cast<uint32_t*>(head + row * stride + column) =
            pack2<T>(c[n][2 * half], c[n][2 * half + 1]);
    }
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(AttentionShape s, const void* q, const void* k, const void* v, void* out, float* lse) {
  extern __shared__ __align__(16) char shared[];
  using Tiles = Tile<T, kWidth>;
  const Tiles queries{reinterpret_cast<T*>(shared)};
  const Tiles keys{queries.data + kRows * Tiles::kStride};
  const Tiles values{keys.data + kKeys * Tiles::kStride};
  const int first = blockIdx.x * kRows;
  const int64_t h = blockIdx.y % s.heads, b = blockIdx.y / s.heads, kv = h / (s.heads / s.kv_heads);
  const AttentionMask mask(s, b);
  const int width = static_cast<int>(s.head_dim);
  const int lane = threadIdx.x % 32, row0 = threadIdx.x / 32 * 16;
  queries.template fill<kRows, kThreads>(head_at<T>(q, s.q, b, first, h), s.q.row, mask.queries - first,
                                         width);
  float sum[kWidth / 8][4] = {};
  float highest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
  const float factor = s.scale * kLog2E;
  const int end = mask.key_end(min(first + kRows, mask.queries) - 1);
  for (int key = mask.key_begin(first) / kKeys * kKeys; key < end; key += kKeys) {
    __syncthreads();
    keys.template fill<kKeys, kThreads>(head_at<T>(k, s.k, b, key, kv), s.k.row, mask.keys - key, width);
    values.template fill<kKeys, kThreads>(head_at<T>(v, s.v, b, key, kv), s.v.row, mask.keys - key, width);
    __syncthreads();
    float p[kKeys / 8][4] = {};
    multiply_rows<T, kWidth, kKeys>(queries, row0, keys, p);
    float now[2] = {highest[0], highest[1]};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int query = first + row0 + lane / 4 + e / 2 * 8, at = key + n * 8 + lane % 4 * 2 + e % 2;
        p[n][e] = mask.sees(query, at) ? p[n][e] * factor : -INFINITY;
        now[e / 2] = fmaxf(now[e / 2], p[n][e]);
      }
    float keep[2], base[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      now[i] = quad_max(now[i]);
      base[i] = now[i] == -INFINITY ? 0.0f : now[i];
      keep[i] = exp2f(highest[i] - base[i]);
      highest[i] = now[i];
      total[i] *= keep[i];
    }
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        p[n][e] = exp2f(p[n][e] - base[e / 2]);
        total[e / 2] += p[n][e];
      }
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[n][e] *= keep[e / 2];
    multiply_by_rows<T, kWidth, kKeys>(p, values, sum);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    total[i] = quad_sum(total[i]);
    const int query = first + row0 + lane / 4 + i * 8;
    const float base = highest[i] == -INFINITY ? 0.0f : highest[i];
    if (lane % 4 == 0 && query < mask.queries)
      lse[(b * s.heads + h) * s.queries + query] = total[i] > 0 ? base / kLog2E + logf(total[i]) : -INFINITY;
  }
#pragma unroll
  for (int n = 0; n < kWidth / 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[n][e] = total[e / 2] > 0 ? sum[n][e] / total[e / 2] : 0.0f;
  store_rows<T, kWidth>(sum, const_cast<T*>(head_at<T>(out, s.out, b, 0, h)), s.out.row, first + row0,
                        mask.queries, width);
}

// dq: as forward, with the keys' tile used twice, as rows and as it is.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    query_gradient_kernel(AttentionShape s, const void* dout, const void* q, const void* k, const void* v,
                          const float* lse, const float* delta, void* dq) {
  extern __shared__ __align__(16) char shared[];
  using Tiles = Tile<T, kWidth>;
  const Tiles queries{reinterpret_cast<T*>(shared)};
  const Tiles gradients{queries.data + kRows * Tiles::kStride};
  const Tiles keys{gradients.data + kRows * Tiles::kStride};
  const Tiles values{keys.data + kKeys * Tiles::kStride};
  const int first = blockIdx.x * kRows;
  const int64_t h = blockIdx.y % s.heads, b = blockIdx.y / s.heads, kv = h / (s.heads / s.kv_heads);
  const AttentionMask mask(s, b);
  const int width = static_cast<int>(s.head_dim);
  const int lane = threadIdx.x % 32, row0 = threadIdx.x / 32 * 16;
  queries.template fill<kRows, kThreads>(head_at<T>(q, s.q, b, first, h), s.q.row, mask.queries - first,
                                         width);
  gradients.template fill<kRows, kThreads>(head_at<T>(dout, s.out, b, first, h), s.out.row,
                                           mask.queries - first, width);
  float row_lse[2], row_delta[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int query = first + row0 + lane / 4 + i * 8;
    const int64_t at = (b * s.heads + h) * s.queries + query;
    row_lse[i] = query < mask.queries ? lse[at] * kLog2E : 0.0f;
    row_delta[i] = query < mask.queries ? delta[at] : 0.0f;
  }
  const float factor = s.scale * kLog2E;
  float sum[kWidth / 8][4] = {};
  const int end = mask.key_end(min(first + kRows, mask.queries) - 1);
  for (int key = mask.key_begin(first) / kKeys * kKeys; key < end; key += kKeys) {
    __syncthreads();
    keys.template fill<kKeys, kThreads>(head_at<T>(k, s.k, b, key, kv), s.k.row, mask.keys - key, width);
    values.template fill<kKeys, kThreads>(head_at<T>(v, s.v, b, key, kv), s.v.row, mask.keys - key, width);
    __syncthreads();
    float p[kKeys / 8][4] = {}, dp[kKeys / 8][4] = {};
    multiply_rows<T, kWidth, kKeys>(queries, row0, keys, p);
    multiply_rows<T, kWidth, kKeys>(gradients, row0, values, dp);
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int query = first + row0 + lane / 4 + e / 2 * 8, at = key + n * 8 + lane % 4 * 2 + e % 2;
        const float weight = mask.sees(query, at) ? exp2f(p[n][e] * factor - row_lse[e / 2]) : 0.0f;
        p[n][e] = weight * (dp[n][e] - row_delta[e / 2]) * s.scale;
      }
    multiply_by_rows<T, kWidth, kKeys>(p, keys, sum);
  }
  store_rows<T, kWidth>(sum, const_cast<T*>(head_at<T>(dq, s.q, b, 0, h)), s.q.row, first + row0,
                        mask.queries, width);
}

// dk and dv: scores are computed transposed, a warp's 16 keys by the queries of a tile.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    key_gradient_kernel(AttentionShape s, const void* dout, const void* q, const void* k, const void* v,
                        const float* lse, const float* delta, void* dk, void* dv) {
  extern __shared__ __align__(16) char shared[];
  using Tiles = Tile<T, kWidth>;
  const Tiles keys{reinterpret_cast<T*>(shared)};
  const Tiles values{keys.data + kRows * Tiles::kStride};
  const Tiles queries{values.data + kRows * Tiles::kStride};
  const Tiles gradients{queries.data + kQueries * Tiles::kStride};
  __shared__ float tile_lse[kQueries], tile_delta[kQueries];
  const int first = blockIdx.x * kRows;
  const int64_t kv = blockIdx.y % s.kv_heads, b = blockIdx.y / s.kv_heads, group = s.heads / s.kv_heads;
  const AttentionMask mask(s, b);
  const int width = static_cast<int>(s.head_dim);
  const int lane = threadIdx.x % 32, row0 = threadIdx.x / 32 * 16;
  keys.template fill<kRows, kThreads>(head_at<T>(k, s.k, b, first, kv), s.k.row, mask.keys - first, width);
  values.template fill<kRows, kThreads>(head_at<T>(v, s.v, b, first, kv), s.v.row, mask.keys - first, width);
  const float factor = s.scale * kLog2E;
  float dkeys[kWidth / 8][4] = {}, dvalues[kWidth / 8][4] = {};
  const int end = mask.query_end(min(first + kRows, mask.keys) - 1);
  for (int64_t h = kv * group; h < (kv + 1) * group; ++h)
    for (int query = mask.query_begin(first) / kQueries * kQueries; query < end; query += kQueries) {
      __syncthreads();
      queries.template fill<kQueries, kThreads>(head_at<T>(q, s.q, b, query, h), s.q.row,
                                                mask.queries - query, width);
      gradients.template fill<kQueries, kThreads>(head_at<T>(dout, s.out, b, query, h), s.out.row,
                                                  mask.queries - query, width);
      if (threadIdx.x < kQueries) {
        const bool inside = query + static_cast<int>(threadIdx.x) < mask.queries;
        const int64_t at = (b * s.heads + h) * s.queries + query + threadIdx.x;
        tile_lse[threadIdx.x] = inside ? lse[at] * kLog2E : 0.0f;
        tile_delta[threadIdx.x] = inside ? delta[at] : 0.0f;
      }
      __syncthreads();
      float p[kQueries / 8][4] = {}, dp[kQueries / 8][4] = {};
      multiply_rows<T, kWidth, kQueries>(keys, row0, queries, p);
      multiply_rows<T, kWidth, kQueries>(values, row0, gradients, dp);
#pragma unroll
      for (int n = 0; n < kQueries / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int key = first + row0 + lane / 4 + e / 2 * 8, column = n * 8 + lane % 4 * 2 + e % 2;
          p[n][e] = mask.sees(query + column, key) ? exp2f(p[n][e] * factor - tile_lse[column]) : 0.0f;
          dp[n][e] = p[n][e] * (dp[n][e] - tile_delta[column]) * s.scale;
        }
      multiply_by_rows<T, kWidth, kQueries>(p, gradients, dvalues);
      multiply_by_rows<T, kWidth, kQueries>(dp, queries, dkeys);
    }
  store_rows<T, kWidth>(dkeys, const_cast<T*>(head_at<T>(dk, s.k, b, 0, kv)), s.k.row, first + row0,
                        mask.keys, width);
  store_rows<T, kWidth>(dvalues, const_cast<T*>(head_at<T>(dv, s.v, b, 0, kv)), s.v.row, first + row0,
                        mask.keys, width);
}

template <typename Body>
void with_tile(const AttentionShape& s, const Body& body) {
  if (s.dtype == DType::kBF16)
    s.head_dim <= 64 ? body.template operator()<bf16, 64>() : body.template operator()<bf16, 128>();
  else
    s.head_dim <= 64 ? body.template operator()<f16, 64>() : body.template operator()<f16, 128>();
}

template <typename Kernel, typename... Args>
void launch(cudaStream_t stream, Kernel kernel, int64_t rows, int64_t heads, int shared, Args... args) {
  require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared), "attention");
  kernel<<<dim3(static_cast<unsigned>(ceil_div(rows, kRows)), static_cast<unsigned>(heads)), kThreads,
           static_cast<size_t>(shared), stream>>>(args...);
  require_launched("attention");
}

template <typename T, int kWidth>
constexpr int shared_bytes(int rows) {
  return rows * Tile<T, kWidth>::kStride * static_cast<int>(sizeof(T));
}

}  // namespace

void tiled_attention(cudaStream_t stream, const AttentionShape& s, const void* q, const void* k,
                     const void* v, void* out, float* lse) {
  with_tile(s, [&]<typename T, int kWidth>() {
    launch(stream, forward_kernel<T, kWidth>, s.queries, s.batch * s.heads,
           shared_bytes<T, kWidth>(kRows + 2 * kKeys), s, q, k, v, out, lse);
  });
}

void tiled_attention_grad(cudaStream_t stream, const AttentionShape& s, const void* dout, const void* q,
                          const void* k, const void* v, const float* lse, const float* delta, void* dq,
                          void* dk, void* dv) {
  with_tile(s, [&]<typename T, int kWidth>() {
    if (s.queries > 0)
      launch(stream, query_gradient_kernel<T, kWidth>, s.queries, s.batch * s.heads,
             shared_bytes<T, kWidth>(2 * kRows + 2 * kKeys), s, dout, q, k, v, lse, delta, dq);
    if (s.keys > 0)
      launch(stream, key_gradient_kernel<T, kWidth>, s.keys, s.batch * s.kv_heads,
             shared_bytes<T, kWidth>(2 * kRows + 2 * kQueries), s, dout, q, k, v, lse, delta, dk, dv);
  });
}

}  // namespace lockstep::cuda
