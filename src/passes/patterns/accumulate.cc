// add(total, matmul(a, b)) is matmul(a, b, total), and add(total, embedding_grad(dy, ids)) is
// embedding_grad(dy, ids, total): both add into the memory of total, where total is
//   - what a gradient holds already (an input with role grad), or
//   - another contribution to the same gradient that nobody else reads (q, k and v projections of one input).
// The product takes the place of the matmul, not of the add at the end of the graph, so that a and b die
// early.
#include "passes/patterns/pattern.h"

namespace lockstep {
namespace {

bool is_gradient_input(const PatternContext& context, Value value) {
  return context.old().producer(value) < 0 && context.old().role(value) == Role::kGrad;
}

// Ops whose third operand, when given, is what they add to.
bool can_accumulate(const Node& node) {
  return (node.op->name == "matmul" || node.op->name == "embedding_grad") && node.inputs.size() == 2;
}

bool apply(PatternContext& context, int32_t n) {
  const Node& product = context.node(n);
  if (!can_accumulate(product) || !context.read_once(product.outputs[0])) return false;
  const Node& sum = context.node(context.readers(product.outputs[0])[0]);
  if (sum.op->name != "add") return false;
  const Value total = sum.inputs[0] == product.outputs[0] ? sum.inputs[1] : sum.inputs[0];
  if (!context.known_before(total, n) || !context.read_once(total)) return false;
  const bool into_input = is_gradient_input(context, total);
  if (!into_input) {
    const int32_t producer = context.old().producer(total);
    // The forward part keeps the arithmetic its author wrote.
    if (producer < 0 || context.loss() < 0 || producer <= context.loss() ||
        context.node(producer).op->traits.view)
      return false;
    // Pointwise work on the total can take the addition along for free.
    if (context.node(producer).op->traits.pointwise && context.node(producer).op->name != "add") return false;
  }
  std::vector<Value> inputs = context.rewriter().mapped(product.inputs);
  if (!context.rewriter().has(total)) return false;
  inputs.push_back(context.rewriter().mapped(total));
  const auto results =
      context.graph().emit_all(*product.op, inputs, product.attributes, context.old().name(sum.outputs[0]));
  context.replace(sum.outputs[0], results[0]);
  return true;
}

}  // namespace

Pattern accumulate_pattern() { return {"accumulate", {"matmul", "embedding_grad"}, apply}; }

}  // namespace lockstep
