#include "passes/loss_node.h"

#include <algorithm>

namespace lockstep {

int32_t loss_node(const Graph& graph) {
  const bool trains = std::any_of(graph.inputs().begin(), graph.inputs().end(),
                                  [](const GraphInput& input) { return input.role == Role::kGrad; });
  const bool has_loss = !graph.outputs().empty() && !graph.outputs()[0].target.valid();
  if (!trains || !has_loss) return -1;
  const auto node = [&](int32_t n) -> const Node& { return graph.nodes()[static_cast<size_t>(n)]; };
  const auto is_part = [&](Value value) {
    const int32_t producer = graph.producer(value);
    return producer >= 0 && node(producer).op->name == "cross_entropy";
  };
  int32_t loss = graph.producer(graph.outputs()[0].value);
  // Chunks of a head (passes/head_chunks.h) are added up one by one, and backward begins behind the first.
  while (loss >= 0 && node(loss).op->name == "add" && is_part(node(loss).inputs[1]))
    loss = graph.producer(node(loss).inputs[0]);
  return loss;
}

}  // namespace lockstep
