#include "passes/leaves.h"

#include <algorithm>

#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "ops/builder.h"
#include "ops/collective.h"

namespace lockstep {
namespace {

bool of_leaves(const Node& node) {
  return node.op->name == "spread" || node.op->name == "leaf_sum" || node.op->name == "cross_entropy_leaves";
}

// One leaf needs no sum of its own: a collective adds in f32 and rounds once.
Value sum_over_group(Graph& graph, const Node& node, const std::vector<Value>& leaves,
                     const std::string& name) {
  Builder b(graph);
  const Value own = leaves.size() == 1 ? leaves[0]
                                       : graph.emit_all("leaf_sum", leaves, {{"wide", true}},
                                                        fmt::format("{}_own", name))[0];
  const Value sum = graph.emit("all_reduce", {own}, same_group(node.attributes), name);
  return b.cast(sum, b.type(leaves[0]).dtype);
}

void replace_loss(Rewriter& rewriter, const Graph& graph, const Node& node) {
  const std::vector<Value> results = node.op->decompose(rewriter.graph(), node, rewriter.mapped(node.inputs));
  for (size_t i = 0; i < results.size(); ++i) {
    rewriter.map(node.outputs[i], results[i]);
    rewriter.graph().rename(results[i], graph.name(node.outputs[i]));
  }
}

}  // namespace

Graph lower_leaves(const Graph& graph, const PassOptions&) {
  if (std::ranges::none_of(graph.nodes(), of_leaves)) return graph;
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "spread") {
      for (const Value leaf : node.outputs) rewriter.map(leaf, rewriter.mapped(node.inputs[0]));
    } else if (node.op->name == "leaf_sum" && node.attributes.integer("size") > 1) {
      rewriter.map(node.outputs[0], sum_over_group(rewriter.graph(), node, rewriter.mapped(node.inputs),
                                                   graph.name(node.outputs[0])));
    } else if (node.op->name == "cross_entropy_leaves") {
      replace_loss(rewriter, graph, node);
    } else {
      rewriter.copy(node);
    }
  }
  return std::move(rewriter).finish();
}

}  // namespace lockstep
