// rms_norm(x, weight) {epsilon} -> y, rstd: each row of x: [..., C] divided by its root mean square, times
// weight. The gradient flows through y alone; rstd is kept for it.
#include "ops/row_norm.h"

namespace lockstep {

OpDef rms_norm_op() {
  OpDef def = row_norm_op(false);
  def.name = "rms_norm";
  def.summary = "rows to mean square 1, then times weight";
  return def;
}

// rms_norm_grad(dy, x, weight, rstd[, residual]) -> dx (+ residual), dweight.
OpDef rms_norm_grad_op() {
  OpDef def = row_norm_grad_op(false);
  def.name = "rms_norm_grad";
  def.summary = "gradient of rms_norm, optionally added to the gradient of the residual stream";
  return def;
}

// add_rms_norm(x, r, weight) {epsilon} -> x + r, its rms_norm, rstd.
OpDef add_rms_norm_op() {
  OpDef def = add_row_norm_op(false);
  def.name = "add_rms_norm";
  def.summary = "x + r and its rms_norm in one sweep";
  return def;
}

}  // namespace lockstep
