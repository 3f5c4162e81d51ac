// matmul(transpose(a), b), where the transpose swaps the last two axes, is matmul(a, b) {transpose_a=true}.
#include "passes/patterns/pattern.h"

namespace lockstep {
namespace {

// The operand of a transpose that swaps the last two axes only, or no value.
Value untransposed(const PatternContext& context, Value value) {
  const Node* transpose = context.made_by(value, "transpose");
  if (transpose == nullptr) return {};
  const auto& permutation = transpose->attributes.integers("permutation");
  const auto rank = static_cast<int64_t>(permutation.size());
  if (rank < 2) return {};
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t expected = axis == rank - 2 ? rank - 1 : axis == rank - 1 ? rank - 2 : axis;
    if (permutation[static_cast<size_t>(axis)] != expected) return {};
  }
  return transpose->inputs[0];
}

bool apply(PatternContext& context, int32_t n) {
  const Node& node = context.node(n);
  if (node.op->name != "matmul") return false;
  std::vector<Value> inputs = node.inputs;
  Attributes attributes = node.attributes;
  // Batch axes of a that join its rows cannot be told apart from columns once they are swapped.
  const bool rows_joined =
      context.old().type(inputs[0]).shape.rank() > 2 && context.old().type(inputs[1]).shape.rank() == 2;
  bool changed = false;
  for (const int operand : {0, 1}) {
    const Value source = untransposed(context, inputs[static_cast<size_t>(operand)]);
    if (!source.valid() || (operand == 0 && rows_joined)) continue;
    const char* flag = operand == 0 ? "transpose_a" : "transpose_b";
    inputs[static_cast<size_t>(operand)] = source;
    attributes.set(flag, !attributes.flag(flag));
    changed = true;
  }
  if (!changed) return false;
  const auto results = context.graph().emit_all(*node.op, context.rewriter().mapped(inputs), attributes,
                                                context.old().name(node.outputs[0]));
  context.replace(node.outputs[0], results[0]);
  return true;
}

}  // namespace

Pattern transposed_matmul_pattern() { return {"transposed_matmul", {"matmul"}, apply}; }

}  // namespace lockstep
