// dx, ... = layer_norm_grad(dy, ...); d = add(residual, dx) is layer_norm_grad(dy, ..., residual): the norm's
// gradient is added to that of the residual stream as it is written; rms_norm_grad likewise. The op rounds dx
// first, so that no bit changes.
#include "passes/patterns/pattern.h"

namespace lockstep {
namespace {

bool apply(PatternContext& context, int32_t n) {
  const Node& norm = context.node(n);
  if (norm.op->name != "layer_norm_grad" && norm.op->name != "rms_norm_grad") return false;
  if (static_cast<int>(norm.inputs.size()) != norm.op->min_inputs || !context.read_once(norm.outputs[0]))
    return false;
  const Node& sum = context.node(context.readers(norm.outputs[0])[0]);
  if (sum.op->name != "add") return false;
  const Value residual = sum.inputs[0] == norm.outputs[0] ? sum.inputs[1] : sum.inputs[0];
  if (!context.known_before(residual, n) || !context.rewriter().has(residual)) return false;
  std::vector<Value> inputs = context.rewriter().mapped(norm.inputs);
  inputs.push_back(context.rewriter().mapped(residual));
  const auto results =
      context.graph().emit_all(*norm.op, inputs, norm.attributes, context.old().name(sum.outputs[0]));
  context.replace(sum.outputs[0], results[0]);
  for (size_t i = 1; i < norm.outputs.size(); ++i) context.replace(norm.outputs[i], results[i]);
  return true;
}

}  // namespace

Pattern residual_norm_grad_pattern() {
  return {"residual_norm_grad", {"layer_norm_grad", "rms_norm_grad"}, apply};
}

}  // namespace lockstep
