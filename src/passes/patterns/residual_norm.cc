// h = add(x, r); y = layer_norm(h) is add_layer_norm(x, r), which writes h and y in one sweep; rms_norm
// likewise.
//
// Left alone where x or r is pointwise work that only the addition reads (a bias, dropout): that fuses with
// the addition, which saves a whole tensor, while the norm would save one read. The fused op rounds the sum
// first, so that no bit changes.
#include "passes/patterns/pattern.h"

namespace lockstep {
namespace {

bool fuses_with_addition(const PatternContext& context, Value operand) {
  const int32_t producer = context.old().producer(operand);
  return producer >= 0 && context.node(producer).op->traits.pointwise && context.read_once(operand);
}

bool apply(PatternContext& context, int32_t n) {
  const Node& sum = context.node(n);
  if (sum.op->name != "add") return false;
  for (const Value operand : sum.inputs)
    if (fuses_with_addition(context, operand)) return false;
  for (const int32_t reader : context.readers(sum.outputs[0])) {
    // What backward computes again must not be computed in forward.
    if (!context.same_side(n, reader)) continue;
    const Node& norm = context.node(reader);
    const bool layer = norm.op->name == "layer_norm";
    if ((!layer && norm.op->name != "rms_norm") || norm.inputs[0] != sum.outputs[0]) continue;
    std::vector<Value> inputs = context.rewriter().mapped(sum.inputs);
    bool ready = true;
    for (size_t i = 1; i < norm.inputs.size(); ++i) {
      ready = ready && context.known_before(norm.inputs[i], n) && context.rewriter().has(norm.inputs[i]);
      if (ready) inputs.push_back(context.rewriter().mapped(norm.inputs[i]));
    }
    if (!ready) continue;
    const auto results = context.graph().emit_all(layer ? "add_layer_norm" : "add_rms_norm", inputs,
                                                  norm.attributes, context.old().name(sum.outputs[0]));
    context.replace(sum.outputs[0], results[0]);
    for (size_t i = 0; i < norm.outputs.size(); ++i) context.replace(norm.outputs[i], results[i + 1]);
    return true;
  }
  return false;
}

}  // namespace

Pattern residual_norm_pattern() { return {"residual_norm", {"layer_norm", "rms_norm"}, apply}; }

}  // namespace lockstep
