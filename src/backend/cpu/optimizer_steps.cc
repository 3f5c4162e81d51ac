#include "backend/cpu/optimizer_steps.h"

#include <algorithm>
#include <cmath>

namespace lockstep::cpu {
namespace {

double integer_power(double base, int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

// t^(1/5) by Newton's iteration from above, which falls until rounding stops it.
double fifth_root(double t) {
  double x = std::max(1.0, t);
  for (;;) {
    const double next = (4.0 * x + t / (x * x * x * x)) / 5.0;
    if (next >= x) return x;
    x = next;
  }
}

float to_float(double x) { return static_cast<float>(x); }

}  // namespace

AdamStep adam_step(const AdamOptions& options, int64_t t, float grad_scale) {
  const double bias1 = 1.0 - integer_power(options.beta1, t), bias2 = 1.0 - integer_power(options.beta2, t);
  return {.grad_scale = grad_scale,
          .beta1 = to_float(options.beta1),
          .one_minus_beta1 = to_float(1.0 - options.beta1),
          .beta2 = to_float(options.beta2),
          .one_minus_beta2 = to_float(1.0 - options.beta2),
          .inv_sqrt_bias2 = to_float(1.0 / std::sqrt(bias2)),
          .eps = to_float(options.eps),
          .step_size = to_float(options.lr / bias1),
          .weight_decay = to_float(options.weight_decay),
          .decay = to_float(1.0 - options.lr * options.weight_decay)};
}

LambStep lamb_step(const AdamOptions& options, int64_t t, float grad_scale) {
  const double bias1 = 1.0 - integer_power(options.beta1, t), bias2 = 1.0 - integer_power(options.beta2, t);
  return {.grad_scale = grad_scale,
          .beta1 = to_float(options.beta1),
          .one_minus_beta1 = to_float(1.0 - options.beta1),
          .beta2 = to_float(options.beta2),
          .one_minus_beta2 = to_float(1.0 - options.beta2),
          .inv_bias1 = to_float(1.0 / bias1),
          .inv_sqrt_bias2 = to_float(1.0 / std::sqrt(bias2)),
          .eps = to_float(options.eps),
          .weight_decay = to_float(options.weight_decay)};
}

LionStep lion_step(const AdamOptions& options, float grad_scale) {
  return {.grad_scale = grad_scale,
          .beta1 = to_float(options.beta1),
          .one_minus_beta1 = to_float(1.0 - options.beta1),
          .beta2 = to_float(options.beta2),
          .one_minus_beta2 = to_float(1.0 - options.beta2),
          .lr = to_float(options.lr),
          .decay = to_float(1.0 - options.lr * options.weight_decay)};
}

float lamb_lr_trust(double lr, double p_squares, double u_squares) {
  const double p_norm = std::sqrt(p_squares), u_norm = std::sqrt(u_squares);
  return to_float(p_norm > 0.0 && u_norm > 0.0 ? lr * (p_norm / u_norm) : lr);
}

AdafactorStep adafactor_step(int64_t t, double eps, float grad_scale) {
  const double root = fifth_root(static_cast<double>(t));
  const double rest = 1.0 / (root * root * root * root);
  return {.grad_scale = grad_scale,
          .beta2 = to_float(1.0 - rest),
          .one_minus_beta2 = to_float(rest),
          .eps = to_float(eps)};
}

AdafactorApply adafactor_apply(double lr, double squares, int64_t count, double clip, double beta1,
                               double weight_decay, float grad_scale) {
  const double rms = std::sqrt(squares / static_cast<double>(count));
  return {.grad_scale = grad_scale,
          .step_size = to_float(lr / std::max(1.0, rms / clip)),
          .beta1 = to_float(beta1),
          .one_minus_beta1 = to_float(1.0 - beta1),
          .decay = to_float(1.0 - lr * weight_decay)};
}

}  // namespace lockstep::cpu
