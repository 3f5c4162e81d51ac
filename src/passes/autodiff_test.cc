// Which parameters have gradients, and of which type.
#include "passes/autodiff.h"

#include <gtest/gtest.h>

#include "graph/op_def.h"
#include "graph/text.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

std::vector<std::string> gradients_of(const Graph& graph) {
  std::vector<std::string> lines;
  for (const GraphInput& input : graph.inputs())
    if (input.role == Role::kGrad)
      lines.push_back(graph.name(input.value) + ": " + to_string(graph.type(input.value)));
  return lines;
}

TEST(Autodiff, AFrozenParameterHasNoGradient) {
  const Graph graph = differentiate(
      parse_graph("graph f(x: f32[8,4], w: f32[4,6] @frozen, v: f32[6,2] @param) {\n  h = matmul(x, w)\n"
                  "  y = matmul(h, v)\n  loss = sum(y)\n  return loss\n}\n",
                  all_ops()));
  EXPECT_EQ(gradients_of(graph), (std::vector<std::string>{"grad.v: f32[6,2]"}));
  // Two products forward and the one for v: none goes back through w.
  int products = 0;
  for (const Node& node : graph.nodes()) products += node.op->name == "matmul" ? 1 : 0;
  EXPECT_EQ(products, 3);
}

TEST(Autodiff, AGradientHasTheTypeOfItsParameter) {
  const Graph graph =
      differentiate(parse_graph("graph f(x: f32[8,4], w: bf16[4,6] @param) {\n  v = cast(w) {dtype=f32}\n"
                                "  y = matmul(x, v)\n  loss = sum(y)\n  return loss\n}\n",
                                all_ops()));
  EXPECT_EQ(gradients_of(graph), (std::vector<std::string>{"grad.w: bf16[4,6]"}));
}

}  // namespace
}  // namespace lockstep
