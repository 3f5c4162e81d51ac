// y = batch_norm(x, ...); z = relu(y) is batch_norm {relu=true}, where nothing else reads y.
//
// Done before autodiff: the gradient then finds the relu's gate again from x, and neither y nor the gated
// gradient is ever stored. No bit changes.
#include "passes/patterns/pattern.h"

namespace lockstep {
namespace {

bool apply(PatternContext& context, int32_t n) {
  const Node& norm = context.node(n);
  if (norm.op->name != "batch_norm" || norm.attributes.flag("relu") || !context.read_once(norm.outputs[0]))
    return false;
  const Node& relu = context.node(context.readers(norm.outputs[0])[0]);
  if (relu.op->name != "relu") return false;
  Attributes attributes = norm.attributes;
  attributes.set("relu", true);
  const auto results = context.graph().emit_all("batch_norm", context.rewriter().mapped(norm.inputs),
                                                attributes, context.old().name(relu.outputs[0]));
  context.replace(relu.outputs[0], results[0]);
  for (size_t i = 1; i < results.size(); ++i) context.replace(norm.outputs[i], results[i]);
  return true;
}

}  // namespace

Pattern batch_norm_relu_pattern() { return {"batch_norm_relu", {"batch_norm"}, apply}; }

}  // namespace lockstep
