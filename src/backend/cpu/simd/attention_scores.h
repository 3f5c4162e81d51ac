// What may happen to the scores and weights of one block of pairs beside softmax: a cap on the scores, and
// dropout of the weights. Everything is [key][kBlock queries], as in attention_tiles.h.
#pragma once
#include "backend/cpu/simd/attention_pack.h"
#include "backend/cpu/simd/math.h"
#include "backend/cpu/simd/philox_vec.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

// What queries are multiplied by when they are packed: scores then come in base 2, or as the tangent's
// argument.
inline float query_scale(const AttentionShape& s) { return s.cap > 0 ? s.scale / s.cap : s.scale * kLog2E; }

// x -> tanh x of kLanes queries, before anything is hidden; times `factor`.
inline void bend_scores(const BlockMask& mask, int64_t first, float factor, float* scores) {
  const Range range = mask.keys_seen_by(first, kLanes);
  for (int64_t j = range.begin; j < range.end; ++j) {
    float* p = scores + j * kBlock + first;
    store(p, tanh(load(p)) * broadcast(factor));
  }
}

// keep[key][query]: 0 where the pair's weight is dropped, else 1 / (1 - p). Pair (query i, key j) of head h
// of sequence b draws at index ((b H + h) T + i) S + j, whatever the blocks are. `rows` is scratch, kBlock^2.
inline void draw_kept(const AttentionShape& s, int64_t b, int64_t h, int64_t first_query, int64_t first_key,
                      const BlockMask& mask, float* rows, float* keep) {
  const PhiloxVec random(s.dropout.seed, s.dropout.stream);
  uint32_t words[kBlock + 4 + PhiloxVec::kWords];
  for (int64_t i = 0; i < mask.queries; ++i) {
    const auto index =
        static_cast<uint64_t>(((b * s.heads + h) * s.queries + first_query + i) * s.keys + first_key);
    const auto skip = static_cast<int64_t>(index % 4);
    for (int64_t at = 0; at < skip + mask.keys; at += PhiloxVec::kWords) {
      const PhiloxVec::Words drawn = random.words(index / 4 + static_cast<uint64_t>(at / 4));
      __builtin_memcpy(words + at, &drawn, sizeof drawn);
    }
    for (int64_t j = 0; j < mask.keys; ++j)
      rows[i * kBlock + j] = words[skip + j] >= s.dropout.threshold ? s.dropout.scale : 0.0f;
  }
  pack_transposed(rows, kBlock, mask.queries, mask.keys, 1.0f, keep);
}

inline void drop_weights(const BlockMask& mask, int64_t first, const float* keep, float* weights) {
  const Range range = mask.keys_seen_by(first, kLanes);
  for (int64_t j = range.begin; j < range.end; ++j) {
    float* p = weights + j * kBlock + first;
    store(p, load(p) * load(keep + j * kBlock + first));
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
