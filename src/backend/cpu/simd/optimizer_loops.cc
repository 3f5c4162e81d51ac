#include "backend/cpu/simd/optimizer_loops.h"

#include "backend/cpu/simd/adamw_replay.h"

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

template <bool kDecoupled>
void adam_range(float* p, float* m, float* v, const float* g, uint16_t* p_bf16, int64_t begin, int64_t end,
                const AdamStep& step_in) {
  const AdamStep step = step_in;
  each_vec(begin, end, [=](int64_t i, auto lanes) {
    const AdamElements old = load_elements(p, m, v, i, lanes);
    store_elements(adam_update<kDecoupled>(old, load(g + i, lanes), step), p, m, v, p_bf16, i, lanes);
  });
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
