#include "passes/dce.h"

#include <algorithm>

#include "graph/op_def.h"
#include "graph/rewriter.h"

namespace lockstep {

Graph remove_dead_nodes(Graph graph) {
  std::vector<bool> needed(static_cast<size_t>(graph.value_count()), false);
  std::vector<bool> kept(graph.nodes().size(), false);
  for (const GraphOutput& output : graph.outputs()) needed[static_cast<size_t>(output.value.id)] = true;
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    kept[n] = node.op->traits.collective ||
              std::any_of(node.outputs.begin(), node.outputs.end(),
                          [&](Value output) { return needed[static_cast<size_t>(output.id)]; });
    if (!kept[n]) continue;
    for (const Value input : node.inputs) needed[static_cast<size_t>(input.id)] = true;
  }
  if (std::ranges::find(kept, false) == kept.end()) return graph;
  Rewriter rewriter(graph);
  for (size_t n = 0; n < kept.size(); ++n)
    if (kept[n]) rewriter.copy(graph.nodes()[n]);
  return std::move(rewriter).finish();
}

}  // namespace lockstep
