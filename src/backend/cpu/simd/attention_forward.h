// Attention forward over one block of queries: scores, running softmax and weighted values, one key block at
// a time.
//
// Scores are in base 2 (the queries carry scale * log2(e)). Each query keeps the largest score so far and the
// sum of 2^(score - largest); when a key block raises the largest, what was summed before is scaled down
// once.
#pragma once
#include "backend/cpu/simd/attention_pack.h"
#include "backend/cpu/simd/attention_scores.h"
#include "backend/cpu/simd/attention_tiles.h"
#include "backend/cpu/simd/exp_fast.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

inline constexpr float kLn2 = 0.693147180559945309f;

struct ForwardScratch {
  float* queries;  // [D][kBlock], transposed
  float* values;   // [kBlock][padded D]
  float* scores;   // [kBlock keys][kBlock queries], then the weights in their place
  float* sums;     // [kBlock][padded D], the output before its division
  float* largest;  // [kBlock]
  float* total;    // [kBlock]
  float* factor;   // [kBlock]
  float* keep;     // [kBlock keys][kBlock queries], with dropout
  float* drawn;    // [kBlock][kBlock], with dropout
};

inline size_t forward_floats(const AttentionShape& shape) {
  const int64_t dim = shape.head_dim, squares = shape.drops ? 3 : 1;
  return static_cast<size_t>(kBlock * dim + 2 * kBlock * padded(dim) + squares * kBlock * kBlock +
                             3 * kBlock);
}

inline ForwardScratch forward_scratch(float* p, int64_t dim) {
  ForwardScratch s;
  s.queries = p;
  s.values = s.queries + kBlock * dim;
  s.scores = s.values + kBlock * padded(dim);
  s.sums = s.scores + kBlock * kBlock;
  s.largest = s.sums + kBlock * padded(dim);
  s.total = s.largest + kBlock;
  s.factor = s.total + kBlock;
  s.keep = s.factor + kBlock;
  s.drawn = s.keep + kBlock * kBlock;
  return s;
}

// Turns the scores of kLanes queries into weights; leaves in factor what earlier sums must be multiplied by.
inline void softmax_lanes(const BlockMask& mask, int64_t first, const ForwardScratch& s) {
  const Range range = mask.keys_seen_by(first, kLanes);
  float* scores = s.scores + first;
  mask.hide(first, s.scores);
  const Vec before = load(s.largest + first);
  Vec largest = before;
  for (int64_t j = range.begin; j < range.end; ++j) largest = max(largest, load(scores + j * kBlock));
  // A query that has seen no key yet has -inf; subtracting 0 then gives weights of 0 instead of NaN.
  const Vec base = select((VecInt)(largest == -kInfinity), zero(), largest);
  Vec sum = zero();
  for (int64_t j = range.begin; j < range.end; ++j) {
    const Vec weight = exp2_below(load(scores + j * kBlock) - base);
    store(scores + j * kBlock, weight);
    sum += weight;
  }
  const Vec factor = exp2_below(before - base);
  store(s.total + first, fma(load(s.total + first), factor, sum));
  store(s.largest + first, largest);
  store(s.factor + first, factor);
}

inline void rescale_sums(const BlockMask& mask, int64_t stride, const ForwardScratch& s) {
  for (int64_t i = 0; i < mask.queries; ++i) {
    // Most blocks do not raise the largest score, and a product by 1 changes nothing.
    if (s.factor[i] == 1.0f) continue;
    float* row = s.sums + i * stride;
    for (int64_t d = 0; d < stride; d += kLanes) store(row + d, load(row + d) * broadcast(s.factor[i]));
  }
}

inline void finish_queries(const AttentionForward& a, int64_t b, int64_t h, int64_t first_query,
                           int64_t queries, const ForwardScratch& s) {
  float* logsumexp = a.logsumexp + (b * a.shape.heads + h) * a.shape.queries + first_query;
  for (int64_t i = 0; i < queries; i += kLanes) {
    const Vec total = load(s.total + i);
    store(s.factor + i, select((VecInt)(total == 0.0f), zero(), 1.0f / total));
    store(logsumexp + i, fma(load(s.largest + i), broadcast(kLn2), log(total)), clip(queries - i, 0, kLanes));
  }
  float* out = a.out + b * a.out_strides.batch + first_query * a.out_strides.row + h * a.out_strides.head;
  unpack_rows(s.sums, queries, a.shape.head_dim, s.factor, out, a.out_strides.row);
}

inline void forward_unit(const AttentionForward& a, int64_t b, int64_t h, int64_t first_query,
                         const ForwardScratch& s) {
  const int64_t dim = a.shape.head_dim, stride = padded(dim);
  const int64_t kv_head = h / (a.shape.heads / a.shape.kv_heads);
  const int64_t queries = clip(a.shape.queries - first_query, 0, kBlock);
  const float* q = a.q + b * a.q_strides.batch + first_query * a.q_strides.row + h * a.q_strides.head;
  const float* k = a.k + b * a.k_strides.batch + kv_head * a.k_strides.head;
  const float* v = a.v + b * a.v_strides.batch + kv_head * a.v_strides.head;

  pack_transposed(q, a.q_strides.row, queries, dim, query_scale(a.shape), s.queries);
  for (int64_t i = 0; i < kBlock; ++i) s.largest[i] = -kInfinity;
  for (int64_t i = 0; i < kBlock; ++i) s.total[i] = 0.0f;
  for (int64_t i = 0; i < kBlock * stride; ++i) s.sums[i] = 0.0f;

  for (int64_t first_key = 0; first_key < a.shape.keys; first_key += kBlock) {
    const BlockMask mask = block_mask(a.shape, b, first_query, first_key);
    if (mask.empty()) continue;
    multiply_keys_queries(k + first_key * a.k_strides.row, a.k_strides.row, s.queries, dim, mask, s.scores);
    if (a.shape.cap > 0)
      for (int64_t i = 0; i < queries; i += kLanes) bend_scores(mask, i, a.shape.cap * kLog2E, s.scores);
    for (int64_t i = 0; i < queries; i += kLanes) softmax_lanes(mask, i, s);
    if (a.shape.drops) {
      draw_kept(a.shape, b, h, first_query, first_key, mask, s.drawn, s.keep);
      for (int64_t i = 0; i < queries; i += kLanes) drop_weights(mask, i, s.keep, s.scores);
    }
    rescale_sums(mask, stride, s);
    pack_rows(v + first_key * a.v_strides.row, a.v_strides.row, mask.keys, dim, 1.0f, s.values);
    add_to_queries(s.scores, s.values, stride, mask, s.sums);
  }
  finish_queries(a, b, h, first_query, queries, s);
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
