// cast(matmul(a, b)) {dtype=f32} of 16-bit operands is matmul(a, b) {dtype="f32"}: the sums are fp32 anyway,
// and are kept instead of being rounded to 16 bits on the way. This is how weight gradients reach their fp32
// destination.
#include "passes/patterns/pattern.h"

namespace lockstep {
namespace {

bool apply(PatternContext& context, int32_t n) {
  const Node& product = context.node(n);
  if (product.op->name != "matmul" || product.inputs.size() != 2 || !context.read_once(product.outputs[0]))
    return false;
  if (context.old().type(product.outputs[0]).dtype == DType::kF32) return false;
  const Node& cast = context.node(context.readers(product.outputs[0])[0]);
  if (cast.op->name != "cast" || cast.attributes.dtype("dtype") != DType::kF32) return false;
  Attributes attributes = product.attributes;
  attributes.set("dtype", std::string("f32"));
  const auto results = context.graph().emit_all(*product.op, context.rewriter().mapped(product.inputs),
                                                attributes, context.old().name(cast.outputs[0]));
  context.replace(cast.outputs[0], results[0]);
  return true;
}

}  // namespace

Pattern matmul_f32_result_pattern() { return {"matmul_f32_result", {"matmul"}, apply}; }

}  // namespace lockstep
