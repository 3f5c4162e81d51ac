#include "train/guard/nearest_parameter.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "ops/registry.h"
#include "passes/autodiff.h"

namespace lockstep {
namespace {

constexpr const char* kLayers =
    "graph t(x: f32[4,2], w1: f32[2,3] @param, w2: f32[3,5] @param) {\n"
    "  x2 = mul(x, x)\n  h = matmul(x2, w1)\n  r = relu(h)\n  c = cast(w2) {dtype=bf16}\n  d = cast(c) "
    "{dtype=f32}\n"
    "  y = matmul(r, d)\n  e = exp(y)\n  loss = sum(e)\n  return loss\n}\n";

TEST(NearestParameter, OperandsFirstThenWhatFeedsTheNode) {
  const Graph graph = parse_graph(kLayers, all_ops());
  EXPECT_EQ(nearest_parameter(graph, graph.find("w1")), "w1");
  EXPECT_EQ(nearest_parameter(graph, graph.find("h")), "w1");
  EXPECT_EQ(nearest_parameter(graph, graph.find("r")), "w1");
  EXPECT_EQ(nearest_parameter(graph, graph.find("y")), "w2");  // casts cost nothing
  EXPECT_EQ(nearest_parameter(graph, graph.find("e")), "w2");
  EXPECT_EQ(nearest_parameter(graph, graph.find("x2")), "w1");  // none feeds it: the first one it meets
}

TEST(NearestParameter, KnowsWhoseGradientItIs) {
  const Graph graph = differentiate(parse_graph(kLayers, all_ops()));
  for (const GraphOutput& output : graph.outputs()) {
    if (!output.target.valid()) continue;
    EXPECT_EQ(grad_name(nearest_parameter(graph, output.value)), graph.name(output.target));
  }
}

}  // namespace
}  // namespace lockstep
