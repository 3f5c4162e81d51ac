// linear(x, w, bias[, residual]) {transpose_b}: x·w + bias, and a residual where it is given.
// matmul_gelu_grad(dy, w, pre) {transpose_b}: dy·w times the slope of gelu (tanh form) at `pre`.
//
// Products with what a library can do to a result before it is stored: summed in fp32 and rounded once.
// Passes make them for backends that have such products (passes/product_epilogues.h), before anything is
// chosen to be recomputed: whoever computes one again computes the same bits.
#include "ops/builder.h"

namespace lockstep {
namespace {

// The type of the product of operands 0 and 1.
Type product_type(const InferContext& c) {
  const Shape &x = c.shape(0), &w = c.shape(1);
  c.require_floating(0);
  if (c.type(1).dtype != c.type(0).dtype) c.fail("operands have different element types; cast one of them");
  if (x.rank() < 2 || w.rank() != 2) c.fail("operand 0 needs at least 2 axes and operand 1 two");
  const bool transposed = c.attributes().flag("transpose_b");
  const int64_t inner = transposed ? w[1] : w[0];
  if (x[-1] != inner) c.fail("inner extents {} and {} differ; they must be equal", x[-1], inner);
  return {c.type(0).dtype, x.with(x.rank() - 1, transposed ? w[0] : w[1])};
}

std::vector<Type> infer_linear(const InferContext& c) {
  const Type result = product_type(c);
  if (c.type(2) != Type{result.dtype, {result.shape[-1]}})
    c.fail("operand 2, the bias, must be {}", to_string(Type{result.dtype, {result.shape[-1]}}));
  if (c.count() == 4 && c.type(3) != result)
    c.fail("operand 3, which is added, must be {}", to_string(result));
  return {result};
}

std::vector<Type> infer_gelu_grad(const InferContext& c) {
  const Type result = product_type(c);
  if (c.type(2) != result) c.fail("operand 2, where the slope is taken, must be {}", to_string(result));
  return {result};
}

std::vector<Value> decompose_linear(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const Value product = b.matmul(inputs[0], inputs[1], false, node.attributes.flag("transpose_b"));
  const Value sum = b.add(product, b.broadcast(inputs[2], graph.type(product).shape));
  return {inputs.size() == 4 ? b.add(inputs[3], sum) : sum};
}

std::vector<Value> decompose_gelu_grad(Graph& graph, const Node& node, std::span<const Value> inputs) {
  Builder b(graph);
  const Value product = b.matmul(inputs[0], inputs[1], false, node.attributes.flag("transpose_b"));
  return {graph.emit("gelu_grad", {inputs[2], product}, {{"approximate", std::string("tanh")}})};
}

Cost cost(const Graph& graph, const Node& node) {
  const auto results = static_cast<double>(graph.type(node.outputs[0]).shape.numel());
  const auto inner = static_cast<double>(graph.type(node.inputs[0]).shape[-1]);
  return {2.0 * results * inner, touched_bytes(graph, node)};
}

OpDef make(std::string_view name, std::string_view summary) {
  OpDef def{.name = name, .summary = summary};
  def.attributes = {{"transpose_b", false, "swap the axes of w"}};
  def.min_inputs = 3;
  def.max_inputs = 3;
  def.stage = Stage::kDifferentiated;
  def.cost = cost;
  return def;
}

}  // namespace

OpDef linear_op() {
  OpDef def = make("linear", "matrix product with a bias, and a residual where it is given, rounded once");
  def.max_inputs = 4;
  def.infer = infer_linear;
  def.decompose = decompose_linear;
  return def;
}

OpDef matmul_gelu_grad_op() {
  OpDef def = make("matmul_gelu_grad", "matrix product times the slope of gelu, rounded once");
  def.infer = infer_gelu_grad;
  def.decompose = decompose_gelu_grad;
  return def;
}

}  // namespace lockstep
