// The constants of one optimizer step, computed on the device in double from the step's scalars; and the
// update of one element by Adam. The arithmetic is that of backend/cpu/optimizer_steps.cc and
// simd/adam_update.h.
#pragma once
#include <cstdint>

#include "backend/cuda/kernels/optimizer.h"

namespace lockstep::cuda {

__device__ inline double integer_power(double base, int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

struct AdamStep {
  float grad_scale, beta1, one_minus_beta1, beta2, one_minus_beta2, inv_bias1, inv_sqrt_bias2, eps, step_size;
  float weight_decay, decay;

  __device__ static AdamStep at(const AdamAttributes& a, int64_t t, float scale, double lr) {
    const double bias1 = 1.0 - integer_power(a.beta1, t), bias2 = 1.0 - integer_power(a.beta2, t);
    return {scale,
            static_cast<float>(a.beta1),
            static_cast<float>(1.0 - a.beta1),
            static_cast<float>(a.beta2),
            static_cast<float>(1.0 - a.beta2),
            static_cast<float>(1.0 / bias1),
            static_cast<float>(1.0 / sqrt(bias2)),
            static_cast<float>(a.epsilon),
            static_cast<float>(lr / bias1),
            static_cast<float>(a.weight_decay),
            static_cast<float>(1.0 - lr * a.weight_decay)};
  }
};

struct AdamElement {
  float p, m, v;
};

template <bool kDecoupled>
__device__ __forceinline__ AdamElement adam_update(AdamElement old, float raw_gradient, const AdamStep& s,
                                                   bool decays) {
  float gradient = raw_gradient * s.grad_scale;
  float p = old.p;
  if constexpr (kDecoupled)
    p = decays ? p * s.decay : p;
  else
    gradient = decays ? fmaf(s.weight_decay, p, gradient) : gradient;
  const float m = fmaf(s.beta1, old.m, s.one_minus_beta1 * gradient);
  const float v = fmaf(s.beta2, old.v, s.one_minus_beta2 * gradient * gradient);
  const float denominator = fmaf(sqrtf(v), s.inv_sqrt_bias2, s.eps);
  return {fmaf(-s.step_size, m / denominator, p), m, v};
}

// How many edges lie at or before `element`.
__device__ __forceinline__ int edges_before(const NoDecay& no_decay, int64_t element) {
  int low = 0, high = no_decay.count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (no_decay.edges[middle] <= element)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace lockstep::cuda
