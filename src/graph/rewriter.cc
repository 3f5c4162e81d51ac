#include "graph/rewriter.h"

#include "base/error.h"
#include "graph/op_def.h"

namespace lockstep {

Rewriter::Rewriter(const Graph& old) : Rewriter(old, [](Value) { return true; }) {}

Rewriter::Rewriter(const Graph& old, const std::function<bool(Value)>& keep)
    : old_(old), graph_(old.ops(), old.name()), map_(static_cast<size_t>(old.value_count())) {
  graph_.reserve(old.value_count());
  for (const GraphInput& input : old.inputs())
    if (keep(input.value))
      map(input.value, graph_.add_input(old.name(input.value), old.type(input.value), input.role));
}

Value Rewriter::mapped(Value old_value) const {
  const Value value = map_[static_cast<size_t>(old_value.id)];
  LOCKSTEP_CHECK(value.valid(), "{} was dropped but is still used", old_.name(old_value));
  return value;
}

std::vector<Value> Rewriter::mapped(std::span<const Value> old_values) const {
  std::vector<Value> values;
  values.reserve(old_values.size());
  for (const Value value : old_values) values.push_back(mapped(value));
  return values;
}

std::span<const Value> Rewriter::copy(const Node& node, std::vector<Value> inputs) {
  const std::span<const Value> results = graph_.copy_node(old_, node, std::move(inputs));
  for (size_t i = 0; i < results.size(); ++i) map(node.outputs[i], results[i]);
  return results;
}

Graph Rewriter::finish() && {
  for (const GraphOutput& output : old_.outputs()) {
    if (output.target.valid())
      graph_.add_update(mapped(output.target), mapped(output.value));
    else
      graph_.add_output(mapped(output.value));
  }
  return std::move(graph_);
}

}  // namespace lockstep
