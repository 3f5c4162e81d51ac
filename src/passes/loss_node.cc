#include "passes/loss_node.h"

#include <algorithm>

namespace lockstep {

int32_t loss_node(const Graph& graph) {
  const bool trains = std::any_of(graph.inputs().begin(), graph.inputs().end(),
                                  [](const GraphInput& input) { return input.role == Role::kGrad; });
  const bool has_loss = !graph.outputs().empty() && !graph.outputs()[0].target.valid();
  return trains && has_loss ? graph.producer(graph.outputs()[0].value) : -1;
}

}  // namespace lockstep
