// One step of Adam or AdamW on a vector of elements: the one place where its arithmetic is written. Dense
// steps and replayed steps go through it, so their bits are equal by construction.
#pragma once
#include "backend/cpu/simd/each_vec.h"
#include "backend/cpu/simd/optimizer_loops.h"

namespace lockstep::cpu::LOCKSTEP_ISA {

struct AdamElements {
  Vec p, m, v;
};

template <class Lanes>
inline AdamElements load_elements(const float* p, const float* m, const float* v, int64_t i, Lanes lanes) {
  return {load(p + i, lanes), load(m + i, lanes), load(v + i, lanes)};
}

template <class Lanes>
inline void store_elements(const AdamElements& x, float* p, float* m, float* v, uint16_t* p_bf16, int64_t i,
                           Lanes lanes) {
  store(p + i, x.p, lanes);
  store(m + i, x.m, lanes);
  store(v + i, x.v, lanes);
  if (p_bf16) store_bf16(p_bf16 + i, x.p, lanes);
}

template <bool kDecoupled>
inline AdamElements adam_update(AdamElements old, Vec raw_gradient, const AdamStep& step) {
  Vec gradient = raw_gradient * broadcast(step.grad_scale);
  Vec p = old.p;
  if constexpr (kDecoupled)
    p = p * broadcast(step.decay);
  else
    gradient = fma(broadcast(step.weight_decay), p, gradient);
  const Vec m = fma(broadcast(step.beta1), old.m, broadcast(step.one_minus_beta1) * gradient);
  const Vec v = fma(broadcast(step.beta2), old.v, broadcast(step.one_minus_beta2) * gradient * gradient);
  const Vec denominator = fma(sqrt(v), broadcast(step.inv_sqrt_bias2), broadcast(step.eps));
  return {fma(broadcast(-step.step_size), m / denominator, p), m, v};
}

// The same with a gradient of +0 where step_size * m / denominator is too small to change p: no root, no
// quotient.
inline AdamElements adamw_fade(AdamElements old, const AdamStep& step) {
  return {old.p * broadcast(step.decay), fma(broadcast(step.beta1), old.m, zero()),
          fma(broadcast(step.beta2), old.v, zero())};
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
