// Attention, forward and backward, in blocks: no matrix of queries by keys is ever stored.
//
// Letters: B batch, T queries, S keys, H query heads, Hkv key heads (H a multiple of Hkv), D head dimension.
// q, out and their gradients are [B,T,H,D]; k, v and theirs [B,S,Hkv,D]; each has its own strides. logsumexp
// is contiguous [B,H,T], in natural units. A query that sees no key gives output 0, logsumexp -inf and
// gradient 0.
//
// The work is cut into units that depend on the shape alone, each writing its own outputs and summing in a
// fixed order: any assignment of units to threads gives the same bits. A unit of forward is 64 queries of one
// head; a unit of backward is one key head of one sequence with all the query heads that share it. Outputs
// are overwritten.
#pragma once
#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd/dropout_loops.h"
#include "backend/cpu/simd/head_strides.h"

namespace lockstep::cpu {

struct AttentionShape {
  int64_t batch;
  int64_t queries;
  int64_t keys;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_dim;
  float scale;
  // Query i stands at position p = i + keys - queries. Causal: it sees the keys j <= p.
  bool causal = false;
  // With a window w > 0 it sees the keys p - w < j <= p, whether or not causal is set.
  int64_t window = 0;
  // [B,T] or null; needs queries == keys. A query sees only keys of an equal id.
  const int32_t* documents = nullptr;
  // [B,S] or null; a key whose byte is 0 is seen by nobody.
  const uint8_t* key_visible = nullptr;
  // > 0: a score x = scale * q·k becomes cap * tanh(x / cap), before anything is hidden.
  float cap = 0;
  // Weights are dropped after softmax: pair (i, j) of head h of sequence b draws at ((b H + h) T + i) S + j.
  bool drops = false;
  DropoutMask dropout = {};
};

struct AttentionForward {
  AttentionShape shape;
  const float* q;
  const float* k;
  const float* v;
  float* out;
  float* logsumexp;
  HeadStrides q_strides, k_strides, v_strides, out_strides;
};

struct AttentionBackward {
  AttentionShape shape;
  const float* q;
  const float* k;
  const float* v;
  const float* out;
  const float* logsumexp;
  const float* dout;
  float* dq;
  float* dk;
  float* dv;
  HeadStrides q_strides, k_strides, v_strides, out_strides, dout_strides, dq_strides, dk_strides, dv_strides;
};

struct AttentionLoops {
  int64_t (*forward_units)(const AttentionShape& shape);
  int64_t (*backward_units)(const AttentionShape& shape);
  // Floats of scratch that one thread needs; any alignment, contents need not be kept between calls.
  size_t (*forward_scratch_floats)(const AttentionShape& shape);
  size_t (*backward_scratch_floats)(const AttentionShape& shape);
  void (*forward)(const AttentionForward& args, int64_t first_unit, int64_t last_unit, float* scratch);
  void (*backward)(const AttentionBackward& args, int64_t first_unit, int64_t last_unit, float* scratch);
};

namespace avx2 {
extern const AttentionLoops attention_loops;
}
namespace avx512 {
extern const AttentionLoops attention_loops;
}

}  // namespace lockstep::cpu
