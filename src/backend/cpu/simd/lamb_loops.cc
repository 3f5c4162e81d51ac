#include "backend/cpu/simd/lamb_loops.h"

#include "backend/cpu/simd/square_sum.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

void moments(const float* p, float* m, float* v, const float* g, float* u, int64_t n, int64_t block_begin,
             int64_t block_end, const LambStep& step_in, double* p_squares, double* u_squares) {
  const LambStep step = step_in;
  const auto update = [=](int64_t i, auto lanes) {
    const Vec gradient = load(g + i, lanes) * broadcast(step.grad_scale);
    const Vec m_new =
        fma(broadcast(step.beta1), load(m + i, lanes), broadcast(step.one_minus_beta1) * gradient);
    const Vec v_new =
        fma(broadcast(step.beta2), load(v + i, lanes), broadcast(step.one_minus_beta2) * gradient * gradient);
    const Vec denominator = fma(sqrt(v_new), broadcast(step.inv_sqrt_bias2), broadcast(step.eps));
    const Vec adam = m_new * broadcast(step.inv_bias1) / denominator;
    const Vec u_new = fma(broadcast(step.weight_decay), load(p + i, lanes), adam);
    store(m + i, m_new, lanes);
    store(v + i, v_new, lanes);
    store(u + i, u_new, lanes);
  };
  for (int64_t block = block_begin; block < block_end; ++block) {
    const int64_t begin = block * kNormBlock;
    const int64_t end = begin + kNormBlock < n ? begin + kNormBlock : n;
    each_vec(begin, end, update);
    // The block is in the first-level cache by now, so its norms cost no memory traffic.
    u_squares[block] = square_sum(begin, end, [u](int64_t i, auto lanes) { return load(u + i, lanes); });
    p_squares[block] = square_sum(begin, end, [p](int64_t i, auto lanes) { return load(p + i, lanes); });
  }
}

void apply(float* p, const float* u, uint16_t* p_bf16, int64_t begin, int64_t end, float lr_trust) {
  const Vec minus_lr_trust = broadcast(-lr_trust);
  each_vec(begin, end, [=](int64_t i, auto lanes) {
    const Vec p_new = fma(minus_lr_trust, load(u + i, lanes), load(p + i, lanes));
    store(p + i, p_new, lanes);
    if (p_bf16) store_bf16(p_bf16 + i, p_new, lanes);
  });
}

}  // namespace

extern const LambLoops lamb_loops = {moments, apply};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
