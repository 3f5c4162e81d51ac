#include "passes/simplify.h"

#include "graph/rewriter.h"
#include "passes/dce.h"
#include "passes/simplify/rule.h"

namespace lockstep {
namespace simplification {

Simplifier::Simplifier(Graph& graph) : graph_(graph) {
  for (const auto rules : {constant_rules(), arithmetic_rules(), shape_rules()})
    for (const Rule& rule : rules)
      if (const OpDef* op = graph.ops().find(rule.op)) rules_[op].push_back(rule);
}

std::vector<Value> Simplifier::emit_all(const OpDef& op, std::span<const Value> inputs,
                                        const Attributes& attributes, std::string_view name) {
  const auto found = rules_.find(&op);
  if (found == rules_.end()) return graph_.emit_all(op, inputs, attributes, name);
  const std::string_view outer = name_;
  name_ = name;
  Value simpler;
  const Type type = op.infer(InferContext(graph_, op, inputs, attributes)).at(0);
  for (const Rule& rule : found->second) {
    simpler = rule.apply(*this, {op, inputs, attributes, type});
    if (simpler.valid()) break;
  }
  name_ = outer;
  if (simpler.valid()) return {simpler};
  return graph_.emit_all(op, inputs, attributes, name);
}

Value Simplifier::emit(std::string_view op, std::initializer_list<Value> inputs,
                       const Attributes& attributes) {
  return emit_all(graph_.ops().get(op), {inputs.begin(), inputs.size()}, attributes, name_).at(0);
}

Value Simplifier::constant(double value, const Type& type) {
  return emit("constant", {}, {{"value", value}, {"shape", extents_of(type.shape)}, {"dtype", type.dtype}});
}

Value Simplifier::operand_constant(double value, const Type& type) {
  return graph_.emit("constant", {},
                     {{"value", value}, {"shape", extents_of(type.shape)}, {"dtype", type.dtype}});
}

Value Simplifier::reshape(Value a, const Shape& shape) {
  return emit("reshape", {a}, {{"shape", extents_of(shape)}});
}

const Node* Simplifier::made_by(Value value, std::string_view op) const {
  const int32_t producer = graph_.producer(value);
  if (producer < 0) return nullptr;
  const Node& node = graph_.nodes()[static_cast<size_t>(producer)];
  return node.op->name == op ? &node : nullptr;
}

std::optional<double> Simplifier::constant_value(Value value) const {
  const Node* node = made_by(value, "constant");
  if (node == nullptr) return std::nullopt;
  return round_to(node->attributes.dtype("dtype"), node->attributes.number("value"));
}

std::vector<int64_t> extents_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

}  // namespace simplification

Graph simplify(const Graph& graph, SimplifyOptions options) {
  Rewriter rewriter(graph);
  simplification::Simplifier simplifier(rewriter.graph());
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "checkpoint" && !options.keep_checkpoints) {
      rewriter.map(node.outputs[0], rewriter.mapped(node.inputs[0]));
      continue;
    }
    if (node.outputs.size() != 1 || !simplifier.has_rules(*node.op)) {
      rewriter.copy(node);
      continue;
    }
    const std::vector<Value> inputs = rewriter.mapped(node.inputs);
    const auto results = simplifier.emit_all(*node.op, inputs, node.attributes, graph.name(node.outputs[0]));
    rewriter.map(node.outputs[0], results[0]);
  }
  return remove_dead_nodes(std::move(rewriter).finish());
}

}  // namespace lockstep
