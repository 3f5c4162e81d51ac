// Attention backward over one key head: the weights are computed again from q, k and logsumexp, block by
// block.
//
// With P the weights and delta = sum over D of dout * out, per query:
//   dV = P^T dout;  dS = P * (dout V^T - delta);  dQ = scale * dS K;  dK = scale * dS^T Q.
// With dropout, M its factors: dV = (M P)^T dout, dS = P * (M dout V^T - delta). A cap multiplies dS by the
// slope of its tangent.
// One unit owns dk and dv of its key head and dq of the query heads that share it, so that nothing is added
// by two threads: query heads in order, then query blocks, then key blocks.
#pragma once
#include "backend/cpu/simd/attention_pack.h"
#include "backend/cpu/simd/attention_scores.h"
#include "backend/cpu/simd/attention_tiles.h"
#include "backend/cpu/simd/exp_fast.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

struct BackwardScratch {
  float* queries_transposed;  // [D][kBlock], times query_scale
  float* dout_transposed;     // [D][kBlock]
  float* queries;             // [kBlock][padded D], times scale
  float* dout;                // [kBlock][padded D]
  float* dq;                  // [kBlock][padded D]
  float* keys;                // [kBlock][padded D], times scale
  float* weights;             // [kBlock keys][kBlock queries]
  float* dscores;             // [kBlock keys][kBlock queries]
  float* logsumexp;           // [kBlock], base 2
  float* delta;               // [kBlock]
  float* ones;                // [kBlock]
  float* keep;                // [kBlock keys][kBlock queries], with dropout
  float* drawn;               // [kBlock][kBlock], with dropout
};

inline size_t backward_floats(const AttentionShape& shape) {
  const int64_t dim = shape.head_dim, squares = shape.drops ? 4 : 2;
  return static_cast<size_t>(2 * kBlock * dim + 4 * kBlock * padded(dim) + squares * kBlock * kBlock +
                             3 * kBlock);
}

inline BackwardScratch backward_scratch(float* p, int64_t dim) {
  const int64_t rows = kBlock * padded(dim);
  BackwardScratch s;
  s.queries_transposed = p;
  s.dout_transposed = s.queries_transposed + kBlock * dim;
  s.queries = s.dout_transposed + kBlock * dim;
  s.dout = s.queries + rows;
  s.dq = s.dout + rows;
  s.keys = s.dq + rows;
  s.weights = s.keys + rows;
  s.dscores = s.weights + kBlock * kBlock;
  s.logsumexp = s.dscores + kBlock * kBlock;
  s.delta = s.logsumexp + kBlock;
  s.ones = s.delta + kBlock;
  s.keep = s.ones + kBlock;
  s.drawn = s.keep + kBlock * kBlock;
  return s;
}

// The weight and the gradient of the score for one key, with what cap and dropout make of them.
inline void bent_weight_gradient(const AttentionShape& shape, const float* keep, Vec logsumexp, Vec delta,
                                 float* weights, float* dscores) {
  const Vec score = load(weights);
  const Vec weight = exp2_below((shape.cap > 0 ? score * broadcast(shape.cap * kLog2E) : score) - logsumexp);
  const Vec kept = shape.drops ? load(keep) : broadcast(1.0f);
  Vec dscore = weight * (kept * load(dscores) - delta);
  if (shape.cap > 0) {
    // A hidden pair has -inf, and a weight of 0 that must not meet it.
    const Vec tangent = max(broadcast(-1.0f), score);
    dscore *= 1.0f - tangent * tangent;
  }
  store(weights, weight * kept);
  store(dscores, dscore);
}

// dscores holds dout V^T on entry and dS on return, both [key][query]; weights holds the scores, then P, of
// which dropout has dropped its part.
inline void weight_gradients(const AttentionShape& shape, const BlockMask& mask, int64_t first,
                             const BackwardScratch& s) {
  const Range range = mask.keys_seen_by(first, kLanes);
  float* weights = s.weights + first;
  float* dscores = s.dscores + first;
  if (shape.cap > 0) bend_scores(mask, first, 1.0f, s.weights);
  mask.hide(first, s.weights);
  const Vec logsumexp = load(s.logsumexp + first);
  const Vec delta = load(s.delta + first);
  if (shape.cap > 0 || shape.drops) {
    for (int64_t j = range.begin; j < range.end; ++j)
      bent_weight_gradient(shape, s.keep + first + j * kBlock, logsumexp, delta, weights + j * kBlock,
                           dscores + j * kBlock);
  } else {
    for (int64_t j = range.begin; j < range.end; ++j) {
      const Vec weight = exp2_below(load(weights + j * kBlock) - logsumexp);
      store(weights + j * kBlock, weight);
      store(dscores + j * kBlock, weight * (load(dscores + j * kBlock) - delta));
    }
  }
  // A tile of add_to_keys may reach over pairs that the ranges hide from these lanes.
  for (int64_t j = 0; j < mask.keys; ++j) {
    if (j == range.begin && !range.empty()) j = range.end;
    if (j >= mask.keys) break;
    store(weights + j * kBlock, zero());
    store(dscores + j * kBlock, zero());
  }
}

inline void load_queries(const AttentionBackward& a, int64_t b, int64_t h, int64_t first_query,
                         int64_t queries, const BackwardScratch& s) {
  const int64_t dim = a.shape.head_dim, stride = padded(dim);
  const float* q = a.q + b * a.q_strides.batch + first_query * a.q_strides.row + h * a.q_strides.head;
  const float* out =
      a.out + b * a.out_strides.batch + first_query * a.out_strides.row + h * a.out_strides.head;
  const float* dout =
      a.dout + b * a.dout_strides.batch + first_query * a.dout_strides.row + h * a.dout_strides.head;
  const float* logsumexp = a.logsumexp + (b * a.shape.heads + h) * a.shape.queries + first_query;
  pack_transposed(q, a.q_strides.row, queries, dim, query_scale(a.shape), s.queries_transposed);
  pack_transposed(dout, a.dout_strides.row, queries, dim, 1.0f, s.dout_transposed);
  pack_rows(q, a.q_strides.row, queries, dim, a.shape.scale, s.queries);
  pack_rows(dout, a.dout_strides.row, queries, dim, 1.0f, s.dout);
  for (int64_t i = 0; i < kBlock; ++i) {
    // +inf makes every weight of the query 0: one that saw no key, or lies past the last.
    const bool sees = i < queries && logsumexp[i] != -kInfinity;
    s.logsumexp[i] = sees ? logsumexp[i] * kLog2E : kInfinity;
    s.delta[i] = 0.0f;
  }
  for (int64_t i = 0; i < queries; ++i) {
    Vec dot = zero();
    each_vec(0, dim, [&](int64_t d, auto lanes) {
      dot = fma(load(s.dout + i * stride + d), load(out + i * a.out_strides.row + d, lanes), dot);
    });
    s.delta[i] = sum(dot);
  }
  for (int64_t i = 0; i < kBlock * stride; ++i) s.dq[i] = 0.0f;
}

inline void clear_rows(float* p, int64_t row_stride, int64_t rows, int64_t dim) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t d = 0; d < dim; ++d) p[r * row_stride + d] = 0.0f;
}

inline void backward_unit(const AttentionBackward& a, int64_t b, int64_t kv_head, const BackwardScratch& s) {
  const int64_t dim = a.shape.head_dim, stride = padded(dim);
  const int64_t group = a.shape.heads / a.shape.kv_heads;
  const float* k = a.k + b * a.k_strides.batch + kv_head * a.k_strides.head;
  const float* v = a.v + b * a.v_strides.batch + kv_head * a.v_strides.head;
  float* dk = a.dk + b * a.dk_strides.batch + kv_head * a.dk_strides.head;
  float* dv = a.dv + b * a.dv_strides.batch + kv_head * a.dv_strides.head;
  clear_rows(dk, a.dk_strides.row, a.shape.keys, dim);
  clear_rows(dv, a.dv_strides.row, a.shape.keys, dim);
  for (int64_t i = 0; i < kBlock; ++i) s.ones[i] = 1.0f;

  for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
    for (int64_t first_query = 0; first_query < a.shape.queries; first_query += kBlock) {
      const int64_t queries = clip(a.shape.queries - first_query, 0, kBlock);
      load_queries(a, b, h, first_query, queries, s);
      for (int64_t j = 0; j < a.shape.keys; j += kBlock) {
        const BlockMask mask = block_mask(a.shape, b, first_query, j);
        if (mask.empty()) continue;
        const float* keys = k + j * a.k_strides.row;
        multiply_keys_queries(keys, a.k_strides.row, s.queries_transposed, dim, mask, s.weights);
        multiply_keys_queries(v + j * a.v_strides.row, a.v_strides.row, s.dout_transposed, dim, mask,
                              s.dscores);
        if (a.shape.drops) draw_kept(a.shape, b, h, first_query, j, mask, s.drawn, s.keep);
        for (int64_t i = 0; i < queries; i += kLanes) weight_gradients(a.shape, mask, i, s);
        add_to_keys(s.weights, s.dout, stride, dim, mask, dv + j * a.dv_strides.row, a.dv_strides.row);
        add_to_keys(s.dscores, s.queries, stride, dim, mask, dk + j * a.dk_strides.row, a.dk_strides.row);
        pack_rows(keys, a.k_strides.row, mask.keys, dim, a.shape.scale, s.keys);
        add_to_queries(s.dscores, s.keys, stride, mask, s.dq);
      }
      float* dq = a.dq + b * a.dq_strides.batch + first_query * a.dq_strides.row + h * a.dq_strides.head;
      unpack_rows(s.dq, queries, dim, s.ones, dq, a.dq_strides.row);
    }
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
