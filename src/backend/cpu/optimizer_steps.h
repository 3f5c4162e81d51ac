// The constants that the optimizer loops take for step t (counted from 1), derived from what the user writes.
//
// Everything is computed in double by multiplication, division and square root in a fixed order, never by the
// C library's pow: the constants are the same bits on every machine.
#pragma once
#include <cstdint>

#include "backend/cpu/simd/adafactor_loops.h"
#include "backend/cpu/simd/lamb_loops.h"
#include "backend/cpu/simd/optimizer_loops.h"

namespace lockstep::cpu {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
};

AdamStep adam_step(const AdamOptions& options, int64_t t, float grad_scale);
LambStep lamb_step(const AdamOptions& options, int64_t t, float grad_scale);
// eps is not used; the usual betas are 0.9 and 0.99.
LionStep lion_step(const AdamOptions& options, float grad_scale);

// lr * |p| / |u| from the sums of the blocks' squares; the ratio is 1 where either norm is zero.
float lamb_lr_trust(double lr, double p_squares, double u_squares);

// beta2 = 1 - t^-0.8.
AdafactorStep adafactor_step(int64_t t, double eps, float grad_scale);
// squares is the sum of u^2 over `count` elements; clip is the paper's d. beta1 is used where a first moment
// is kept.
AdafactorApply adafactor_apply(double lr, double squares, int64_t count, double clip, double beta1,
                               double weight_decay, float grad_scale);

}  // namespace lockstep::cpu
