// Steps of AdamW with a gradient of zero, many at once: how an embedding row that no token touched catches
// up.
//
// A step costs a square root and a division, which no interleaving of rows makes cheaper: successive steps of
// one row already keep the divider busy. But the first moment falls much faster than the second, and after
// some hundred steps (137 for the usual betas, lr 1e-3 and p 0.02) its share is below half an ulp of the
// parameter, which it can no longer change. Steps are therefore taken in blocks: where a bound says that
// nothing in the block can move, only the three products are computed. The bound errs on the side of the full
// step, so the bits are always those of the full step.
#pragma once
#include "backend/cpu/simd/adam_update.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

inline constexpr int64_t kReplayBlock = 32;  // steps

#if defined(__AVX512F__)
inline bool all_lanes(VecInt condition) { return _mm512_movepi32_mask((__m512i)condition) == 0xffff; }
#else
inline bool all_lanes(VecInt condition) { return _mm256_movemask_ps((__m256)condition) == 0xff; }
#endif

inline Vec absolute(Vec v) { return (Vec)((VecInt)v & broadcast_int(0x7fffffff)); }

inline float power_of_block(float x) {
  for (int64_t n = 1; n < kReplayBlock; n *= 2) x *= x;
  return x;
}

// What holds for every step of a block, and leaves a factor of 8 for the rounding of the bound itself.
struct ReplayBound {
  // The least that 32 steps leave of p and v, and the largest step size.
  float p_factor, v_factor, step_size, eps;

  ReplayBound(const AdamStep* steps, int64_t count)
      : v_factor(power_of_block(steps[0].beta2)), eps(steps[0].eps) {
    float least_decay = steps[0].decay, largest = steps[0].step_size;
    for (int64_t t = 1; t < count; ++t) {
      least_decay = steps[t].decay < least_decay ? steps[t].decay : least_decay;
      largest = steps[t].step_size > largest ? steps[t].step_size : largest;
    }
    p_factor = least_decay > 0.0f && least_decay <= 1.0f ? power_of_block(least_decay) : 0.0f;
    step_size = largest;
  }

  // |step_size m / (sqrt(v) + eps)| < |p| 2^-28 for all of the block's p, m and v: a quarter of an ulp is
  // 2^-26 at the least. The inverse bias correction is at least 1; below 2^-90 a parameter's ulp is no longer
  // relative; eps keeps the rounding of a subnormal v harmless. A first moment of zero moves nothing, unless
  // v is not a number.
  VecInt holds(const AdamElements& x) const {
    constexpr float kSmallestP = 0x1p-90f, kSmallestEps = 1e-16f;
    const Vec p = absolute(x.p) * broadcast(p_factor);
    const Vec denominator = sqrt(x.v * broadcast(v_factor)) + broadcast(eps);
    const Vec room = p * denominator;
    const Vec move = absolute(x.m) * broadcast(step_size * 0x1p28f);
    const VecInt small = (VecInt)(move < room) & (VecInt)(p >= broadcast(kSmallestP)) &
                         broadcast_int(eps >= kSmallestEps ? -1 : 0);
    return small | ((VecInt)(x.m == zero()) & (VecInt)(room >= zero()));
  }
};

// kGroup Vecs take the steps together, so that the constants are loaded once.
template <int kGroup>
struct ReplayGroup {
  AdamElements elements[kGroup];

  void full(const AdamStep* steps, int64_t count) {
    for (int64_t t = 0; t < count; ++t)
      for (AdamElements& x : elements) x = adam_update<true>(x, zero(), steps[t]);
  }
  // Returns whether m came to rest: it stays where a step rounds to the same number, usually a subnormal one,
  // whose products some processors take a hundred times longer to form.
  bool fade(const AdamStep* steps, int64_t count) {
    VecInt rest = broadcast_int(-1);
    for (AdamElements& x : elements) {
      const Vec m = x.m;
      for (int64_t t = 0; t < count; ++t) x = adamw_fade(x, steps[t]);
      rest = rest & ((VecInt)m == (VecInt)x.m);
    }
    return all_lanes(rest);
  }
  void fade_at_rest(const AdamStep* steps, int64_t count) {
    for (int64_t t = 0; t < count; ++t)
      for (AdamElements& x : elements) {
        x.p = x.p * broadcast(steps[t].decay);
        x.v = fma(broadcast(steps[t].beta2), x.v, zero());
      }
  }
  bool still(const AdamStep* steps, int64_t count) const {
    const ReplayBound bound(steps, count);
    VecInt all = broadcast_int(-1);
    for (const AdamElements& x : elements) all = all & bound.holds(x);
    return all_lanes(all);
  }
  void replay(const AdamStep* steps, int64_t k) {
    bool faded = false, at_rest = false;
    for (int64_t t = 0; t < k; t += kReplayBlock) {
      const int64_t count = k - t < kReplayBlock ? k - t : kReplayBlock;
      // A short block is not worth the test, unless the one before was still.
      faded = (faded || count == kReplayBlock) && still(steps + t, count);
      if (!faded)
        full(steps + t, count);
      else if (at_rest)
        fade_at_rest(steps + t, count);
      else
        at_rest = fade(steps + t, count);
    }
  }
};

template <int kGroup, class Lanes>
inline void replay_group(float* p, float* m, float* v, uint16_t* p_bf16, int64_t first, Lanes lanes,
                         const AdamStep* steps, int64_t k) {
  ReplayGroup<kGroup> group;
  for (int j = 0; j < kGroup; ++j) group.elements[j] = load_elements(p, m, v, first + j * kLanes, lanes);
  group.replay(steps, k);
  for (int j = 0; j < kGroup; ++j)
    store_elements(group.elements[j], p, m, v, p_bf16, first + j * kLanes, lanes);
}

// Rows that are touched often: no grouping, neighbouring Vecs overlap by themselves.
inline void replay_few(float* p, float* m, float* v, uint16_t* p_bf16, int64_t n, const AdamStep* steps,
                       int64_t k) {
  each_vec(0, n, [=](int64_t i, auto lanes) {
    AdamElements x = load_elements(p, m, v, i, lanes);
    for (int64_t t = 0; t < k; ++t) x = adam_update<true>(x, zero(), steps[t]);
    store_elements(x, p, m, v, p_bf16, i, lanes);
  });
}

inline void adamw_replay(float* p, float* m, float* v, uint16_t* p_bf16, int64_t n, const AdamStep* steps,
                         int64_t k) {
  if (k < kReplayBlock) return replay_few(p, m, v, p_bf16, n, steps, k);
  constexpr int kGroup = 4;
  int64_t i = 0;
  for (; i + kGroup * kLanes <= n; i += kGroup * kLanes)
    replay_group<kGroup>(p, m, v, p_bf16, i, AllLanes{}, steps, k);
  if (i + 2 * kLanes <= n) {
    replay_group<2>(p, m, v, p_bf16, i, AllLanes{}, steps, k);
    i += 2 * kLanes;
  }
  each_vec(i, n, [=](int64_t j, auto lanes) { replay_group<1>(p, m, v, p_bf16, j, lanes, steps, k); });
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
