#include "graph/interpreter.h"

#include "base/error.h"
#include "graph/op_def.h"

namespace lockstep {
namespace {

std::vector<RefTensor> run_pointwise(const Graph& graph, const Node& node,
                                     const std::vector<const RefTensor*>& inputs) {
  RefTensor out(graph.type(node.outputs[0]));
  std::vector<double> arguments(inputs.size());
  for (int64_t i = 0; i < out.numel(); ++i) {
    for (size_t k = 0; k < inputs.size(); ++k) arguments[k] = (*inputs[k])[i];
    out[i] = node.op->scalar(arguments, node.attributes);
  }
  return {std::move(out)};
}

// A fused op has no implementation of its own here: what it decomposes into is its meaning.
std::vector<RefTensor> run_decomposed(const Graph& graph, const Node& node,
                                      const std::vector<const RefTensor*>& inputs, InterpretOptions options) {
  Graph simple(graph.ops(), "decomposed");
  std::vector<Value> operands;
  RefTensors bound;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = fmt::format("operand{}", i);
    operands.push_back(simple.add_input(name, inputs[i]->type));
    bound[name] = *inputs[i];
  }
  for (const Value result : node.op->decompose(simple, node, operands)) simple.add_output(result);
  return interpret(simple, bound, options);
}

std::vector<RefTensor> run_node(const Graph& graph, const Node& node,
                                const std::vector<const RefTensor*>& inputs, InterpretOptions options) {
  const OpDef& op = *node.op;
  if (op.scalar != nullptr) return run_pointwise(graph, node, inputs);
  if (op.reference != nullptr) {
    std::vector<RefTensor> outputs;
    for (const Value value : node.outputs) outputs.emplace_back(graph.type(value));
    op.reference({inputs, outputs, node.attributes});
    return outputs;
  }
  if (op.decompose != nullptr) return run_decomposed(graph, node, inputs, options);
  throw UserError("{} cannot be interpreted: it needs other workers", op.name);
}

}  // namespace

std::vector<RefTensor> interpret(const Graph& graph, const RefTensors& inputs, InterpretOptions options) {
  std::vector<RefTensor> values(static_cast<size_t>(graph.value_count()));
  for (const GraphInput& input : graph.inputs()) {
    const std::string& name = graph.name(input.value);
    const auto found = inputs.find(name);
    if (found == inputs.end()) throw UserError("interpret {}: input {} is missing", graph.name(), name);
    if (found->second.type != graph.type(input.value))
      throw UserError("interpret {}: input {} is {}, the graph wants {}", graph.name(), name,
                      to_string(found->second.type), to_string(graph.type(input.value)));
    values[static_cast<size_t>(input.value.id)] = found->second;
  }
  for (const Node& node : graph.nodes()) {
    std::vector<const RefTensor*> operands;
    for (const Value value : node.inputs) operands.push_back(&values[static_cast<size_t>(value.id)]);
    std::vector<RefTensor> results = run_node(graph, node, operands, options);
    for (size_t i = 0; i < results.size(); ++i) {
      if (options.round)
        for (double& x : results[i].data) x = round_to(results[i].type.dtype, x);
      values[static_cast<size_t>(node.outputs[i].id)] = std::move(results[i]);
    }
  }
  std::vector<RefTensor> outputs;
  for (const GraphOutput& output : graph.outputs())
    outputs.push_back(values[static_cast<size_t>(output.value.id)]);
  return outputs;
}

}  // namespace lockstep
