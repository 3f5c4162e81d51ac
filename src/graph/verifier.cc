#include "graph/verifier.h"

#include <unordered_set>

#include "base/error.h"
#include "graph/text.h"

namespace lockstep {
namespace {

void verify_node(const Graph& graph, size_t index, Stage stage) {
  const Node& node = graph.nodes()[index];
  const std::string where = to_text(graph, node);
  for (const Value input : node.inputs)
    LOCKSTEP_CHECK(graph.producer(input) < static_cast<int32_t>(index), "an operand comes later: {}", where);
  LOCKSTEP_CHECK(node.op->stage <= stage, "{} belongs to stage {}, the graph is {}: {}", node.op->name,
                 name_of(node.op->stage), name_of(stage), where);
  const std::vector<Type> types =
      node.op->infer(InferContext(graph, *node.op, node.inputs, node.attributes));
  LOCKSTEP_CHECK(types.size() == node.outputs.size(), "result count: {}", where);
  for (size_t i = 0; i < types.size(); ++i) {
    LOCKSTEP_CHECK(graph.type(node.outputs[i]) == types[i], "result {} is {}, its op says {}: {}", i,
                   to_string(graph.type(node.outputs[i])), to_string(types[i]), where);
    LOCKSTEP_CHECK(graph.producer(node.outputs[i]) == static_cast<int32_t>(index), "producer: {}", where);
  }
}

}  // namespace

void verify(const Graph& graph, Stage stage) {
  for (size_t index = 0; index < graph.nodes().size(); ++index) verify_node(graph, index, stage);
  std::unordered_set<int32_t> written;
  for (const GraphOutput& output : graph.outputs()) {
    LOCKSTEP_CHECK(output.value.valid() && output.value.id < graph.value_count(), "an output of {}", graph.name());
    if (!output.target.valid()) continue;
    LOCKSTEP_CHECK(graph.producer(output.target) < 0, "{} is written but is no input", graph.name(output.target));
    LOCKSTEP_CHECK(graph.type(output.target) == graph.type(output.value), "{} is written with another type",
                   graph.name(output.target));
    LOCKSTEP_CHECK(written.insert(output.target.id).second, "{} is written twice", graph.name(output.target));
  }
}

}  // namespace lockstep
