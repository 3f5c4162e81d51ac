// What layer_norm and rms_norm, their fusions with a residual addition and their gradients share.
//
// All of them normalise each row of x: [..., C] over the last axis. A layer norm is centered: it subtracts
// the mean and has a bias. Statistics are f32 and have the shape of x without its last axis, so that they
// split like x does. Weight and bias are stored in f32 or like x.
#pragma once
#include "graph/op_def.h"

namespace lockstep {

// (x, weight[, bias]) -> (y[, mean], rstd).
OpDef row_norm_op(bool centered);
// (dy, x, weight[, mean], rstd[, residual]) -> (dx, dweight[, dbias]), with residual added to dx.
OpDef row_norm_grad_op(bool centered);
// (x, r, weight[, bias]) -> (sum, y[, mean], rstd), where sum = x + r is what is normalised.
OpDef add_row_norm_op(bool centered);

// Checks x: [..., C] and the parameters (weight, or weight and bias) that begin at operand `weight`.
void check_row_norm(const InferContext& context, int x, int weight, bool centered);
Type row_statistic(const Type& x);

}  // namespace lockstep
