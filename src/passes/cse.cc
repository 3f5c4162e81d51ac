#include "passes/cse.h"

#include <algorithm>
#include <unordered_map>

#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "passes/recompute.h"

namespace lockstep {
namespace {

// Every attribute takes part, at its default or not: printed values are exact.
std::string key_of(const Node& node, std::vector<Value> inputs) {
  if (node.op->name == "add" || node.op->name == "mul")
    std::sort(inputs.begin(), inputs.end(), [](Value a, Value b) { return a.id < b.id; });
  std::string key(node.op->name);
  for (const Value input : inputs) key += fmt::format(" {}", input.id);
  for (const auto& [name, value] : node.attributes.entries())
    key += fmt::format(" {}={}", name, to_string(value));
  return key;
}

}  // namespace

Graph merge_common_subexpressions(const Graph& graph) {
  Rewriter rewriter(graph);
  std::unordered_map<std::string, std::vector<Value>> seen;
  for (const Node& node : graph.nodes()) {
    if (node.op->traits.collective || is_recomputed(graph, node)) {
      rewriter.copy(node);
      continue;
    }
    const auto [found, fresh] = seen.try_emplace(key_of(node, rewriter.mapped(node.inputs)));
    if (fresh) {
      found->second = rewriter.copy(node);
      continue;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) rewriter.map(node.outputs[i], found->second[i]);
  }
  return std::move(rewriter).finish();
}

}  // namespace lockstep
