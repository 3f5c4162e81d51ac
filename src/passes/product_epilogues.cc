#include "passes/product_epilogues.h"

#include <array>

#include "ops/builder.h"
#include "passes/patterns/pattern.h"

namespace lockstep {
namespace {

// The product that makes a value, if nothing else reads it and a weight [K, N] is its second operand.
const Node* product_of(const PatternContext& context, Value value) {
  const Node* const product = context.made_by(value, "matmul");
  if (product == nullptr || !context.read_once(value) || product->inputs.size() != 2) return nullptr;
  const Graph& graph = context.old();
  const bool narrow = graph.type(value).dtype == DType::kBF16 || graph.type(value).dtype == DType::kF16;
  const bool plain = graph.type(product->inputs[0]).dtype == graph.type(value).dtype &&
                     graph.type(product->inputs[1]).shape.rank() == 2 &&
                     graph.type(product->inputs[0]).shape.rank() >= 2 &&
                     !product->attributes.flag("transpose_a");
  return narrow && plain ? product : nullptr;
}

// A vector that is repeated along all axes but the last, whether it is cast before or after.
Value bias_of(const PatternContext& context, Value value) {
  const Node* const cast = context.made_by(value, "cast");
  const Node* const broadcast = context.made_by(cast == nullptr ? value : cast->inputs[0], "broadcast");
  if (broadcast == nullptr) return {};
  const Value vector = broadcast->inputs[0];
  const Shape& shape = context.old().type(vector).shape;
  const bool fits = shape.rank() == 1 && shape[0] == context.old().type(value).shape[-1];
  return fits ? vector : Value{};
}

struct Biased {
  const Node* product = nullptr;
  Value bias;
};

// add(product, bias) in either order.
Biased biased_product(const PatternContext& context, const Node& sum) {
  if (sum.op->name != "add") return {};
  for (const size_t i : {0, 1}) {
    const Node* const product = product_of(context, sum.inputs[i]);
    const Value bias = product == nullptr ? Value{} : bias_of(context, sum.inputs[1 - i]);
    if (bias.valid()) return {product, bias};
  }
  return {};
}

Attributes attributes_of(const Node& product) {
  return {{"transpose_b", product.attributes.flag("transpose_b")}};
}

void emit(PatternContext& context, const Node& replaced, std::string_view op, const Node& product,
          std::initializer_list<Value> more) {
  std::vector<Value> inputs = context.rewriter().mapped(product.inputs);
  const DType dtype = context.old().type(replaced.outputs[0]).dtype;
  for (const Value value : more)
    inputs.push_back(Builder(context.graph()).cast(context.rewriter().mapped(value), dtype));
  const Value result = context.graph().emit_all(op, inputs, attributes_of(product),
                                                context.old().name(replaced.outputs[0]))[0];
  context.replace(replaced.outputs[0], result);
}

bool take_residual(PatternContext& context, int32_t n) {
  const Node& sum = context.node(n);
  if (sum.op->name != "add") return false;
  for (const size_t i : {0, 1}) {
    const Node* const inner = context.made_by(sum.inputs[i], "add");
    if (inner == nullptr || !context.read_once(sum.inputs[i])) continue;
    const Biased biased = biased_product(context, *inner);
    const Value residual = sum.inputs[1 - i];
    if (biased.product == nullptr || bias_of(context, residual).valid()) continue;
    emit(context, sum, "linear", *biased.product, {biased.bias, residual});
    return true;
  }
  return false;
}

bool take_bias(PatternContext& context, int32_t n) {
  const Node& sum = context.node(n);
  const Biased biased = biased_product(context, sum);
  if (biased.product == nullptr) return false;
  emit(context, sum, "linear", *biased.product, {biased.bias});
  return true;
}

bool is_repeated(const PatternContext& context, Value value) {
  const Node* const cast = context.made_by(value, "cast");
  return context.made_by(cast == nullptr ? value : cast->inputs[0], "broadcast") != nullptr;
}

int64_t inner_extent(const PatternContext& context, const Node& product) {
  return context.old().type(product.inputs[0]).shape[-1];
}

// Of two products the one with the shorter inner axis, which waits for memory anyway: LoRA's, say.
bool take_addend(PatternContext& context, int32_t n) {
  const Node& sum = context.node(n);
  if (sum.op->name != "add") return false;
  const Graph& graph = context.old();
  const Node* product = nullptr;
  Value addend;
  for (const size_t i : {1, 0}) {
    const Node* const found = product_of(context, sum.inputs[i]);
    const Value other = sum.inputs[1 - i];
    if (found == nullptr || graph.type(other) != graph.type(sum.outputs[0])) continue;
    if (is_repeated(context, other)) continue;  // cheaper where the sum reads the little that is repeated
    if (product != nullptr && inner_extent(context, *product) <= inner_extent(context, *found)) continue;
    product = found;
    addend = other;
  }
  if (product == nullptr) return false;
  emit(context, sum, "matmul", *product, {addend});
  return true;
}

bool take_slope(PatternContext& context, int32_t n) {
  const Node& slope = context.node(n);
  if (slope.op->name != "gelu_grad" || slope.attributes.text("approximate") != "tanh") return false;
  const Node* const product = product_of(context, slope.inputs[1]);
  if (product == nullptr) return false;
  emit(context, slope, "matmul_gelu_grad", *product, {slope.inputs[0]});
  return true;
}

}  // namespace

Graph take_product_epilogues(const Graph& graph, const PassOptions& options) {
  if (!options.product_epilogues) return graph;
  return apply_patterns(graph,
                        std::array{Pattern{"linear with residual", {"matmul"}, take_residual},
                                   Pattern{"linear", {"matmul"}, take_bias},
                                   Pattern{"matmul with addend", {"matmul"}, take_addend},
                                   Pattern{"matmul_gelu_grad", {"gelu_grad"}, take_slope}},
                        options);
}

}  // namespace lockstep
