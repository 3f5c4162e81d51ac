// Attention by plain arithmetic in fp32: a warp per query, or per key for dk and dv. Any head width up to
// 256.
#include "backend/cuda/kernels/attention_kernels.h"
#include "backend/cuda/kernels/attention_mask.cuh"
#include "backend/cuda/kernels/element.cuh"
#include "backend/cuda/kernels/sums.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kMostPerLane = 8;  // head widths up to 256

// One row of a head, spread over the lanes: element lane + 32 i.
template <typename T>
struct LaneRow {
  float v[kMostPerLane] = {};
  __device__ void load(const T* p, int width) {
#pragma unroll
    for (int i = 0; i < kMostPerLane; ++i) {
      const int at = i * 32 + threadIdx.x % 32;
      v[i] = at < width ? to_float(p[at]) : 0.0f;
    }
  }
  __device__ void store(T* p, int width) const {
#pragma unroll
    for (int i = 0; i < kMostPerLane; ++i) {
      const int at = i * 32 + threadIdx.x % 32;
      if (at < width) p[at] = from_float<T>(v[i]);
    }
  }
  __device__ float dot(const LaneRow& other) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kMostPerLane; ++i) sum = fmaf(v[i], other.v[i], sum);
    return warp_all(sum);
  }
  __device__ void add(float factor, const LaneRow& other) {
#pragma unroll
    for (int i = 0; i < kMostPerLane; ++i) v[i] = fmaf(factor, other.v[i], v[i]);
  }
};

struct Place {
  int64_t b, h, row;
  bool alive;
  __device__ Place(int64_t batch, int64_t heads, int64_t rows) {
    const int64_t warp = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
    alive = warp < batch * heads * rows;
    row = warp % rows;
    h = warp / rows % heads;
    b = warp / rows / heads;
  }
};

template <typename T>
__device__ __forceinline__ const T* at(const void* p, const HeadLayout& l, int64_t b, int64_t row,
                                       int64_t h) {
  return static_cast<const T*>(p) + b * l.batch + row * l.row + h * l.head;
}
template <typename T>
__device__ __forceinline__ T* at(void* p, const HeadLayout& l, int64_t b, int64_t row, int64_t h) {
  return static_cast<T*>(p) + b * l.batch + row * l.row + h * l.head;
}

template <typename T>
__global__ void forward_kernel(AttentionShape s, const void* q, const void* k, const void* v, void* out,
                               float* lse) {
  const Place place(s.batch, s.heads, s.queries);
  if (!place.alive) return;
  const AttentionMask mask(s, place.b);
  const int width = static_cast<int>(s.head_dim), query = static_cast<int>(place.row);
  const int64_t kv_head = place.h / (s.heads / s.kv_heads);
  LaneRow<T> mine, sum;
  mine.load(at<T>(q, s.q, place.b, query, place.h), width);
  float highest = -INFINITY, total = 0;
  for (int key = mask.key_begin(query); key < mask.key_end(query); ++key) {
    if (!mask.sees(query, key)) continue;
    LaneRow<T> other;
    other.load(at<T>(k, s.k, place.b, key, kv_head), width);
    const float score = mine.dot(other) * s.scale;
    const float now = fmaxf(highest, score);
    const float keep = expf(highest - now), weight = expf(score - now);
    other.load(at<T>(v, s.v, place.b, key, kv_head), width);
#pragma unroll
    for (int i = 0; i < kMostPerLane; ++i) sum.v[i] *= keep;
    sum.add(weight, other);
    total = total * keep + weight;
    highest = now;
  }
#pragma unroll
  for (int i = 0; i < kMostPerLane; ++i) sum.v[i] = total > 0 ? sum.v[i] / total : 0.0f;
  sum.store(at<T>(out, s.out, place.b, query, place.h), width);
  if (threadIdx.x % 32 == 0)
    lse[(place.b * s.heads + place.h) * s.queries + query] = total > 0 ? highest + logf(total) : -INFINITY;
}

template <typename T>
__global__ void delta_kernel(AttentionShape s, const void* dout, const void* out, float* delta) {
  const Place place(s.batch, s.heads, s.queries);
  if (!place.alive) return;
  LaneRow<T> a, b;
  a.load(at<T>(dout, s.out, place.b, place.row, place.h), static_cast<int>(s.head_dim));
  b.load(at<T>(out, s.out, place.b, place.row, place.h), static_cast<int>(s.head_dim));
  const float sum = a.dot(b);
  if (threadIdx.x % 32 == 0) delta[(place.b * s.heads + place.h) * s.queries + place.row] = sum;
}

template <typename T>
__global__ void query_gradient_kernel(AttentionShape s, const void* dout, const void* q, const void* k,
                                      const void* v, const float* lse, const float* delta, void* dq) {
  const Place place(s.batch, s.heads, s.queries);
  if (!place.alive) return;
  const AttentionMask mask(s, place.b);
  const int width = static_cast<int>(s.head_dim), query = static_cast<int>(place.row);
  const int64_t kv_head = place.h / (s.heads / s.kv_heads);
  const int64_t statistic = (place.b * s.heads + place.h) * s.queries + query;
  LaneRow<T> mine, dy, sum;
  mine.load(at<T>(q, s.q, place.b, query, place.h), width);
  dy.load(at<T>(dout, s.out, place.b, query, place.h), width);
  for (int key = mask.key_begin(query); key < mask.key_end(query); ++key) {
    if (!mask.sees(query, key)) continue;
    LaneRow<T> keys, values;
    keys.load(at<T>(k, s.k, place.b, key, kv_head), width);
    values.load(at<T>(v, s.v, place.b, key, kv_head), width);
    const float weight = expf(mine.dot(keys) * s.scale - lse[statistic]);
    sum.add(weight * (dy.dot(values) - delta[statistic]) * s.scale, keys);
  }
  sum.store(at<T>(dq, s.q, place.b, query, place.h), width);
}

template <typename T>
__global__ void key_gradient_kernel(AttentionShape s, const void* dout, const void* q, const void* k,
                                    const void* v, const float* lse, const float* delta, void* dk, void* dv) {
  const Place place(s.batch, s.kv_heads, s.keys);
  if (!place.alive) return;
  const AttentionMask mask(s, place.b);
  const int width = static_cast<int>(s.head_dim), key = static_cast<int>(place.row);
  const int64_t group = s.heads / s.kv_heads;
  LaneRow<T> keys, values, dkey, dvalue;
  keys.load(at<T>(k, s.k, place.b, key, place.h), width);
  values.load(at<T>(v, s.v, place.b, key, place.h), width);
  for (int64_t h = place.h * group; h < (place.h + 1) * group; ++h)
    for (int query = mask.query_begin(key); query < mask.query_end(key); ++query) {
      if (!mask.sees(query, key)) continue;
      const int64_t statistic = (place.b * s.heads + h) * s.queries + query;
      LaneRow<T> rows, dy;
      rows.load(at<T>(q, s.q, place.b, query, h), width);
      dy.load(at<T>(dout, s.out, place.b, query, h), width);
      const float weight = expf(rows.dot(keys) * s.scale - lse[statistic]);
      dvalue.add(weight, dy);
      dkey.add(weight * (dy.dot(values) - delta[statistic]) * s.scale, rows);
    }
  dkey.store(at<T>(dk, s.k, place.b, key, place.h), width);
  dvalue.store(at<T>(dv, s.v, place.b, key, place.h), width);
}

unsigned blocks_of(int64_t batch, int64_t heads, int64_t rows) {
  return blocks_for(batch * heads * rows, kWarps, INT32_MAX);
}

}  // namespace

void attention_delta(cudaStream_t stream, const AttentionShape& s, const void* dout, const void* out,
                     float* delta) {
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    delta_kernel<T><<<blocks_of(s.batch, s.heads, s.queries), kWarps * 32, 0, stream>>>(s, dout, out, delta);
  });
  require_launched("attention_delta");
}

void plain_attention(cudaStream_t stream, const AttentionShape& s, const void* q, const void* k,
                     const void* v, void* out, float* lse) {
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    forward_kernel<T>
        <<<blocks_of(s.batch, s.heads, s.queries), kWarps * 32, 0, stream>>>(s, q, k, v, out, lse);
  });
  require_launched("attention");
}

void plain_attention_grad(cudaStream_t stream, const AttentionShape& s, const void* dout, const void* q,
                          const void* k, const void* v, const float* lse, const float* delta, void* dq,
                          void* dk, void* dv) {
  with_storage(s.dtype, [&](auto zero) {
    using T = decltype(zero);
    query_gradient_kernel<T><<<blocks_of(s.batch, s.heads, s.queries), kWarps * 32, 0, stream>>>(
        s, dout, q, k, v, lse, delta, dq);
    key_gradient_kernel<T><<<blocks_of(s.batch, s.kv_heads, s.keys), kWarps * 32, 0, stream>>>(
        s, dout, q, k, v, lse, delta, dk, dv);
  });
  require_launched("attention_grad");
}

}  // namespace lockstep::cuda
