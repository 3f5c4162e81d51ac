#include "backend/cpu/simd/optimizer_loops.h"

#include "backend/cpu/simd/each_vec.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

template <bool kMomentum, bool kNesterov>
void sgd_range(float* p, float* buf, const float* g, uint16_t* p_bf16, int64_t begin, int64_t end,
               const SgdStep& step) {
  const Vec grad_scale = broadcast(step.grad_scale), weight_decay = broadcast(step.weight_decay);
  const Vec momentum = broadcast(step.momentum), minus_lr = broadcast(-step.lr);
  each_vec(begin, end, [=](int64_t i, auto lanes) {
    const Vec p_old = load(p + i, lanes);
    const Vec gradient = fma(weight_decay, p_old, load(g + i, lanes) * grad_scale);
    Vec direction = gradient;
    if constexpr (kMomentum) {
      const Vec buf_new = fma(momentum, load(buf + i, lanes), gradient);
      store(buf + i, buf_new, lanes);
      direction = kNesterov ? fma(momentum, buf_new, gradient) : buf_new;
    }
    const Vec p_new = fma(minus_lr, direction, p_old);
    store(p + i, p_new, lanes);
    if (p_bf16) store_bf16(p_bf16 + i, p_new, lanes);
  });
}

void sgd(float* p, float* buf, const float* g, uint16_t* p_bf16, int64_t begin, int64_t end,
         const SgdStep& step) {
  if (!buf) return sgd_range<false, false>(p, buf, g, p_bf16, begin, end, step);
  if (step.nesterov) return sgd_range<true, true>(p, buf, g, p_bf16, begin, end, step);
  sgd_range<true, false>(p, buf, g, p_bf16, begin, end, step);
}

struct AdamElements {
  Vec p, m, v;
};

// The one place where Adam's and AdamW's arithmetic is written: dense steps and replayed steps go through it,
// so their bits are equal by construction.
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

template <bool kDecoupled>
void adam_range(float* p, float* m, float* v, const float* g, uint16_t* p_bf16, int64_t begin, int64_t end,
                const AdamStep& step_in) {
  const AdamStep step = step_in;
  each_vec(begin, end, [=](int64_t i, auto lanes) {
    const AdamElements updated = adam_update<kDecoupled>(
        {load(p + i, lanes), load(m + i, lanes), load(v + i, lanes)}, load(g + i, lanes), step);
    store(p + i, updated.p, lanes);
    store(m + i, updated.m, lanes);
    store(v + i, updated.v, lanes);
    if (p_bf16) store_bf16(p_bf16 + i, updated.p, lanes);
  });
}

// kGroup Vecs take the k steps together, to hide the latency of square root and division.
template <int kGroup, class Lanes>
inline void replay_group(float* p, float* m, float* v, uint16_t* p_bf16, int64_t first, Lanes lanes,
                         const AdamStep* steps, int64_t k) {
  AdamElements elements[kGroup];
  for (int j = 0; j < kGroup; ++j) {
    const int64_t i = first + j * kLanes;
    elements[j] = {load(p + i, lanes), load(m + i, lanes), load(v + i, lanes)};
  }
  for (int64_t t = 0; t < k; ++t)
    for (int j = 0; j < kGroup; ++j) elements[j] = adam_update<true>(elements[j], zero(), steps[t]);
  for (int j = 0; j < kGroup; ++j) {
    const int64_t i = first + j * kLanes;
    store(p + i, elements[j].p, lanes);
    store(m + i, elements[j].m, lanes);
    store(v + i, elements[j].v, lanes);
    if (p_bf16) store_bf16(p_bf16 + i, elements[j].p, lanes);
  }
}

void adamw_replay(float* p, float* m, float* v, uint16_t* p_bf16, int64_t n, const AdamStep* steps,
                  int64_t k) {
  constexpr int kGroup = 4;
  int64_t i = 0;
  for (; i + kGroup * kLanes <= n; i += kGroup * kLanes)
    replay_group<kGroup>(p, m, v, p_bf16, i, AllLanes{}, steps, k);
  each_vec(i, n, [=](int64_t j, auto lanes) { replay_group<1>(p, m, v, p_bf16, j, lanes, steps, k); });
}

void lion(float* p, float* m, const float* g, uint16_t* p_bf16, int64_t begin, int64_t end,
          const LionStep& step) {
  const Vec grad_scale = broadcast(step.grad_scale), decay = broadcast(step.decay);
  const Vec beta1 = broadcast(step.beta1), one_minus_beta1 = broadcast(step.one_minus_beta1);
  const Vec beta2 = broadcast(step.beta2), one_minus_beta2 = broadcast(step.one_minus_beta2);
  const Vec lr = broadcast(step.lr);
  each_vec(begin, end, [=](int64_t i, auto lanes) {
    const Vec gradient = load(g + i, lanes) * grad_scale;
    const Vec m_old = load(m + i, lanes);
    const Vec direction = fma(beta1, m_old, one_minus_beta1 * gradient);
    const Vec move = select(direction > zero(), lr, select(direction < zero(), -lr, zero()));
    const Vec p_new = load(p + i, lanes) * decay - move;
    store(p + i, p_new, lanes);
    store(m + i, fma(beta2, m_old, one_minus_beta2 * gradient), lanes);
    if (p_bf16) store_bf16(p_bf16 + i, p_new, lanes);
  });
}

}  // namespace

extern const OptimizerLoops optimizer_loops = {sgd, adam_range<false>, adam_range<true>, adamw_replay, lion};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
