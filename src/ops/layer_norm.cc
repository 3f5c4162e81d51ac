// layer_norm(x, weight, bias) {epsilon} -> y, mean, rstd: each row of x: [..., C] minus its mean, divided by
// its deviation, times weight plus bias. The gradient flows through y alone; mean and rstd are kept for it.
#include "ops/row_norm.h"

namespace lockstep {

OpDef layer_norm_op() {
  OpDef def = row_norm_op(true);
  def.name = "layer_norm";
  def.summary = "rows to mean 0 and variance 1, then times weight plus bias";
  return def;
}

// layer_norm_grad(dy, x, weight, mean, rstd[, residual]) -> dx (+ residual), dweight, dbias.
OpDef layer_norm_grad_op() {
  OpDef def = row_norm_grad_op(true);
  def.name = "layer_norm_grad";
  def.summary = "gradient of layer_norm, optionally added to the gradient of the residual stream";
  return def;
}

// add_layer_norm(x, r, weight, bias) {epsilon} -> x + r, its layer_norm, mean, rstd.
OpDef add_layer_norm_op() {
  OpDef def = add_row_norm_op(true);
  def.name = "add_layer_norm";
  def.summary = "x + r and its layer_norm in one sweep";
  return def;
}

}  // namespace lockstep
