// BlockMask: which keys of one block the queries of one block may see.
//
// Causal and window masks give each query a contiguous range of keys, so that whole blocks, and tiles inside
// a block on the diagonal, are skipped by comparing ranges. Documents and padding are looked at key by key,
// and only in blocks where they change something. What is skipped depends on shape and masks alone, never on
// the values of q and k.
#pragma once
#include "backend/cpu/simd/attention_loops.h"
#include "backend/cpu/simd/vec.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

inline constexpr int64_t kBlock = 64;

// Indices [begin, end) inside a block.
struct Range {
  int64_t begin;
  int64_t end;
  bool empty() const { return begin >= end; }
};

inline int64_t clip(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

struct BlockMask {
  int64_t queries;  // valid ones in this block, at most kBlock
  int64_t keys;
  bool bounded;                   // by causality or a window
  int64_t diagonal;               // position of the first query, counted from the first key of the block
  int64_t window;                 // 0 when there is none
  bool hides_all;                 // by documents or padding
  const int32_t* query_document;  // null when documents hide nothing here
  const int32_t* key_document;
  const uint8_t* key_visible;  // null when padding hides nothing here

  // Keys that at least one of `count` queries from `first` may see as far as ranges tell.
  Range keys_seen_by(int64_t first, int64_t count) const {
    if (!bounded) return {0, keys};
    const int64_t last = diagonal + first + count - 1;
    const int64_t begin = window > 0 ? diagonal + first - window + 1 : 0;
    return {clip(begin, 0, keys), clip(last + 1, 0, keys)};
  }

  // Keys that every one of `count` queries from `first` sees.
  Range keys_seen_by_all(int64_t first, int64_t count) const {
    if (query_document || key_visible) return {0, 0};
    if (!bounded) return {0, keys};
    const int64_t last = diagonal + first + count - 1;
    const int64_t begin = window > 0 ? last - window + 1 : 0;
    return {clip(begin, 0, keys), clip(diagonal + first + 1, 0, keys)};
  }

  // Queries that may see at least one of `count` keys from `first`.
  Range queries_seeing(int64_t first, int64_t count) const {
    if (!bounded) return {0, queries};
    const int64_t end = window > 0 ? first + count - 1 + window - diagonal : queries;
    return {clip(first - diagonal, 0, queries), clip(end, 0, queries)};
  }

  bool empty() const { return hides_all || keys_seen_by(0, queries).empty(); }

  // Writes -inf over the scores [key][kBlock queries] of pairs that are hidden, for kLanes queries from
  // `first` and the keys of keys_seen_by(first, kLanes); other keys are not touched.
  void hide(int64_t first, float* scores) const {
    const Range some = keys_seen_by(first, kLanes);
    const Range all = keys_seen_by_all(first, kLanes);
    VecInt lane = {}, document = {};
    for (int i = 0; i < kLanes; ++i) lane[i] = i;
    if (query_document)
      for (int i = 0; i < kLanes; ++i) document[i] = first + i < queries ? query_document[first + i] : 0;
    for (int64_t j = some.begin; j < some.end; ++j) {
      if (j >= all.begin && j < all.end) continue;
      VecInt seen = broadcast_int(key_visible && !key_visible[j] ? 0 : -1);
      if (bounded) seen &= lane >= in_block(j - diagonal - first);
      if (window > 0) seen &= lane < in_block(j - diagonal - first + window);
      if (query_document) seen &= document == key_document[j];
      float* p = scores + j * kBlock + first;
      store(p, select(seen, load(p), broadcast(-__builtin_inff())));
    }
  }

  // A query index of this block, or one past either end of it: lanes have 32 bits, sequences may be longer.
  static int32_t in_block(int64_t i) { return static_cast<int32_t>(clip(i, -kBlock, kBlock)); }
};

inline void hide_by_documents(const int32_t* query, const int32_t* key, BlockMask& mask) {
  int32_t query_min = query[0], query_max = query[0], key_min = key[0], key_max = key[0];
  for (int64_t i = 1; i < mask.queries; ++i) {
    query_min = query[i] < query_min ? query[i] : query_min;
    query_max = query[i] > query_max ? query[i] : query_max;
  }
  for (int64_t j = 1; j < mask.keys; ++j) {
    key_min = key[j] < key_min ? key[j] : key_min;
    key_max = key[j] > key_max ? key[j] : key_max;
  }
  if (query_max < key_min || key_max < query_min) mask.hides_all = true;
  if (query_min == query_max && key_min == key_max && query_min == key_min) return;
  mask.query_document = query;
  mask.key_document = key;
}

inline void hide_by_padding(const uint8_t* visible, BlockMask& mask) {
  int64_t count = 0;
  for (int64_t j = 0; j < mask.keys; ++j) count += visible[j] != 0;
  if (count == 0) mask.hides_all = true;
  if (count < mask.keys) mask.key_visible = visible;
}

inline BlockMask block_mask(const AttentionShape& s, int64_t b, int64_t first_query, int64_t first_key) {
  BlockMask mask = {};
  mask.queries = clip(s.queries - first_query, 0, kBlock);
  mask.keys = clip(s.keys - first_key, 0, kBlock);
  mask.bounded = s.causal || s.window > 0;
  mask.diagonal = first_query + s.keys - s.queries - first_key;
  mask.window = s.window;
  if (s.documents) {
    const int32_t* documents = s.documents + b * s.queries;
    hide_by_documents(documents + first_query, documents + first_key, mask);
  }
  if (s.key_visible) hide_by_padding(s.key_visible + b * s.keys + first_key, mask);
  return mask;
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
