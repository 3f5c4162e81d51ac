// One query per head over a cache. See cached_attention_loops.h.
#include "backend/cpu/simd/cached_attention_loops.h"

#include "backend/cpu/simd/convert.h"
#include "backend/cpu/simd/math.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

template <class Lanes>
inline Vec load_as_float(const float* p, Lanes lanes) {
  return load(p, lanes);
}
template <class Lanes>
inline Vec load_as_float(const uint16_t* p, Lanes lanes) {
  return load_bf16(p, lanes);
}
template <class Lanes>
inline void store_float(float* p, Vec v, Lanes lanes) {
  store(p, v, lanes);
}
template <class Lanes>
inline void store_float(uint16_t* p, Vec v, Lanes lanes) {
  store_bf16(p, v, lanes);
}

// Queries [G][D], sums [G][D], scores [G][S], totals [G].
int64_t scratch_floats(const CachedAttention& a) {
  const int64_t group = a.heads / a.kv_heads;
  return group * (2 * a.head_dim + a.slots + 1);
}

// Scores of all slots become weights, 0 where a slot is hidden; what they add up to is returned.
inline float softmax(float* scores, const CachedAttention& a, float* logsumexp) {
  if (a.cap > 0)
    for_lanes(a.slots, [&](int64_t i, auto lanes) {
      store(scores + i, tanh(load(scores + i, lanes) / broadcast(a.cap)) * broadcast(a.cap), lanes);
    });
  for (int64_t j = 0; j < a.slots; ++j)
    if (!a.visible[j]) scores[j] = -kInfinity;
  const float largest = max_of(scores, a.slots);
  if (largest == -kInfinity) {
    *logsumexp = -kInfinity;
    return 0.0f;
  }
  const float total = sum_lanes(a.slots, [&](int64_t i, auto lanes) {
    const Vec weight = exp(load_or(scores + i, lanes, broadcast(-kInfinity)) - broadcast(largest));
    store(scores + i, weight, lanes);
    return weight;
  });
  *logsumexp = largest + log(broadcast(total))[0];
  return total;
}

template <class Stored>
void attend(const CachedAttention& a, int64_t kv_head, float* scratch) {
  const int64_t dim = a.head_dim, group = a.heads / a.kv_heads, row = a.kv_heads * dim;
  const int64_t first = kv_head * group;
  float* queries = scratch;
  float* sums = queries + group * dim;
  float* scores = sums + group * dim;
  float* totals = scores + group * a.slots;
  const auto* q = static_cast<const Stored*>(a.q) + first * dim;
  const auto* k = static_cast<const Stored*>(a.k) + kv_head * dim;
  const auto* v = static_cast<const Stored*>(a.v) + kv_head * dim;
  auto* out = static_cast<Stored*>(a.out) + first * dim;
  for_lanes(group * dim, [&](int64_t i, auto lanes) {
    store(queries + i, load_as_float(q + i, lanes) * broadcast(a.scale), lanes);
    store(sums + i, zero(), lanes);
  });
  for (int64_t j = 0; j < a.slots; ++j) {
    const Stored* key = k + j * row;
    for (int64_t g = 0; g < group; ++g)
      scores[g * a.slots + j] = !a.visible[j] ? 0.0f : sum_lanes(dim, [&](int64_t i, auto lanes) {
        return load(queries + g * dim + i, lanes) * load_as_float(key + i, lanes);
      });
  }
  for (int64_t g = 0; g < group; ++g) totals[g] = softmax(scores + g * a.slots, a, a.logsumexp + first + g);
  for (int64_t j = 0; j < a.slots; ++j) {
    if (!a.visible[j]) continue;
    const Stored* value = v + j * row;
    for (int64_t g = 0; g < group; ++g) {
      const Vec weight = broadcast(scores[g * a.slots + j]);
      float* sum = sums + g * dim;
      for_lanes(dim, [&](int64_t i, auto lanes) {
        store(sum + i, fma(weight, load_as_float(value + i, lanes), load(sum + i, lanes)), lanes);
      });
    }
  }
  for (int64_t g = 0; g < group; ++g) {
    const Vec factor = broadcast(totals[g] == 0.0f ? 0.0f : 1.0f / totals[g]);
    for_lanes(dim, [&](int64_t i, auto lanes) {
      store_float(out + g * dim + i, load(sums + g * dim + i, lanes) * factor, lanes);
    });
  }
}

}  // namespace

extern const CachedAttentionLoops cached_attention_loops = {scratch_floats, attend<float>, attend<uint16_t>};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
