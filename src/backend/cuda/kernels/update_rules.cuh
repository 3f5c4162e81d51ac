// The updates of one element: sgd, adam, adamw, lion. What the kernels of f32 buffers (optimizer.cu) and of
// bf16 ones (rounded_update.cu) share, so that both are the same arithmetic.
#pragma once
#include "backend/cuda/kernels/optimizer_steps.cuh"

namespace lockstep::cuda {

struct SgdStep {
  float grad_scale, lr, momentum, weight_decay;
};

struct SgdRule {
  float momentum, weight_decay;
  bool nesterov;
  using Step = SgdStep;
  __device__ Step step(const StepScalars& s) const { return {*s.scale, *s.lr, momentum, weight_decay}; }
  __device__ __forceinline__ float apply(const Step& s, float p, float g, float* m, float*,
                                         bool decays) const {
    const float gradient = decays ? fmaf(s.weight_decay, p, g * s.grad_scale) : g * s.grad_scale;
    float direction = gradient;
    if (m != nullptr) {
      *m = fmaf(s.momentum, *m, gradient);
      direction = nesterov ? fmaf(s.momentum, *m, gradient) : *m;
    }
    return fmaf(-s.lr, direction, p);
  }
};

template <bool kDecoupled>
struct AdamRule {
  AdamAttributes attributes;
  using Step = AdamStep;
  __device__ Step step(const StepScalars& s) const {
    return AdamStep::at(attributes, *s.step, *s.scale, *s.lr);
  }
  __device__ __forceinline__ float apply(const Step& s, float p, float g, float* m, float* v,
                                         bool decays) const {
    const AdamElement now = adam_update<kDecoupled>({p, *m, *v}, g, s, decays);
    *m = now.m;
    *v = now.v;
    return now.p;
  }
};

struct LionRule {
  AdamAttributes attributes;
  struct Step {
    float grad_scale, beta1, one_minus_beta1, beta2, one_minus_beta2, lr, decay;
  };
  __device__ Step step(const StepScalars& s) const {
    const double lr = *s.lr;
    return {*s.scale,
            static_cast<float>(attributes.beta1),
            static_cast<float>(1.0 - attributes.beta1),
            static_cast<float>(attributes.beta2),
            static_cast<float>(1.0 - attributes.beta2),
            *s.lr,
            static_cast<float>(1.0 - lr * attributes.weight_decay)};
  }
  __device__ __forceinline__ float apply(const Step& s, float p, float g, float* m, float*,
                                         bool decays) const {
    const float gradient = g * s.grad_scale;
    const float direction = fmaf(s.beta1, *m, s.one_minus_beta1 * gradient);
    *m = fmaf(s.beta2, *m, s.one_minus_beta2 * gradient);
    const float move = direction > 0.0f ? s.lr : direction < 0.0f ? -s.lr : 0.0f;
    return (decays ? p * s.decay : p) - move;
  }
};

}  // namespace lockstep::cuda
