// What the attention ops share: extents, who may see whom, checks of operands, cost.
//
// Letters: B batch, T queries, S keys, H query heads, Hkv key heads (H a multiple of Hkv), D width of a head.
// Query i stands at position p = i + S - T. Causal: it sees keys j <= p. A window w > 0: it sees p - w < j <=
// p, whether or not causal is set. Operands named by `mask` come last: keys_visible u8|bool [B,S] (a key with
// 0 is seen by nobody), then documents i32 [B,T] (needs T = S; a query sees keys of its own document only).
//
// A cap c > 0 bends every score x to c tanh(x / c) before anything is hidden. With dropout > 0 the operand
// rng i64[2] comes after the masks: each weight becomes 0 with that probability or is divided by one minus
// it, drawn as the dropout op draws for a tensor [B,H,T,S] with the same key.
#pragma once
#include "graph/op_def.h"

namespace lockstep {

struct AttentionRule {
  int64_t batch = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  bool causal = false;
  int64_t window = 0;
  double scale = 0;
  double cap = 0;
  double dropout = 0;
  int64_t key = 0;
  // Operands of the node, -1 where absent.
  int keys_visible = -1;
  int documents = -1;
  int rng = -1;

  // As far as causality and the window go.
  bool sees(int64_t query, int64_t key) const {
    const int64_t position = query + keys - queries;
    if ((causal || window > 0) && key > position) return false;
    return window == 0 || key > position - window;
  }
  // Pairs of query and key of one head and sequence that are seen; masks that come as operands are not
  // counted.
  double visible_pairs() const;
};

std::vector<AttributeDef> attention_attributes();

// From the shapes of q and k; the operands of masks start at `first_mask`.
AttentionRule attention_rule(const Shape& q, const Shape& k, const Attributes& attributes, int first_mask);
// From the shape of a packed qkv [B, T, (H + 2 Hkv) D] and the attributes heads and kv_heads.
AttentionRule packed_attention_rule(const Shape& qkv, const Attributes& attributes, int first_mask);

// Fail unless q, k, v (operands first, first + 1, first + 2) fit together, or unless qkv does.
void check_qkv(const InferContext& context, int first);
void check_packed_qkv(const InferContext& context, int operand);
// Fails unless `mask` is known, the operands it names are there with the right types, and the window is
// legal.
void check_masks(const InferContext& context, const AttentionRule& rule, int first_mask);

// 4 D flops per pair forward, 10 D backward (which computes the scores again).
Cost attention_cost(const Graph& graph, const Node& node, const AttentionRule& rule, double flops_per_pair);

}  // namespace lockstep
