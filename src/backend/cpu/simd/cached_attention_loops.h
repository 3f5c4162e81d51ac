// CachedAttentionLoops: one query per head over the keys and values of a cache, of which some slots are seen.
//
// q is [H,D], k and v [S,Hkv,D], out [H,D], all f32 or all bf16; sums are f32. A unit is a key head with the
// query heads that share it: keys and values are read once for all of them, hidden ones not at all. Sums run
// over the slots in their order.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep::cpu {

struct CachedAttention {
  const void* q;
  const void* k;
  const void* v;
  const uint8_t* visible;  // [S]
  void* out;
  float* logsumexp;  // [H]
  int64_t slots, heads, kv_heads, head_dim;
  float scale;
  float cap;  // 0: none
};

struct CachedAttentionLoops {
  // Floats of scratch that one thread needs.
  int64_t (*scratch_floats)(const CachedAttention& args);
  void (*f32)(const CachedAttention& args, int64_t kv_head, float* scratch);
  void (*bf16)(const CachedAttention& args, int64_t kv_head, float* scratch);
};

namespace avx2 {
extern const CachedAttentionLoops cached_attention_loops;
}
namespace avx512 {
extern const CachedAttentionLoops cached_attention_loops;
}

}  // namespace lockstep::cpu
