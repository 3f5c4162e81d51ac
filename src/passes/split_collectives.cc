#include "passes/split_collectives.h"

#include "graph/rewriter.h"

namespace lockstep {

Graph split_collectives(const Graph& graph, const PassOptions&) {
  Rewriter rewriter(graph);
  Graph& split = rewriter.graph();
  for (const Node& node : graph.nodes()) {
    if (node.op->start.empty()) {
      rewriter.copy(node);
      continue;
    }
    const std::string& name = graph.name(node.outputs[0]);
    const std::vector<Value> operands = rewriter.mapped(node.inputs);
    std::vector<Value> waiting =
        split.emit_all(node.op->start, operands, node.attributes, fmt::format("{}_start", name));
    waiting.insert(waiting.end(), operands.begin(), operands.end());
    rewriter.map(node.outputs[0], split.emit_all(node.op->done, waiting, {}, name)[0]);
  }
  return std::move(rewriter).finish();
}

}  // namespace lockstep
