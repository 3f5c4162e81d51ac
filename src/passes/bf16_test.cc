#include "passes/bf16.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "ops/registry.h"
#include "passes/autodiff.h"

namespace lockstep {
namespace {

TEST(Bf16, ProductsAndWhatFollowsThemTurn16Bit) {
  const Graph graph = parse_graph(
      "graph f(x: f32[8,4], w: f32[4,2] @param, b: f32[2] @param) {\n"
      "  y = matmul(x, w)\n"
      "  c = broadcast(b) {shape=[8,2]}\n"
      "  z = add(y, c)\n"
      "  loss = sum(z)\n"
      "  return loss\n"
      "}\n",
      all_ops());
  const Graph lowered = compute_in_bf16(graph);
  EXPECT_EQ(to_string(lowered.type(lowered.find("y"))), "bf16[8,2]");
  EXPECT_EQ(to_string(lowered.type(lowered.find("z"))), "bf16[8,2]");
  EXPECT_EQ(to_string(lowered.type(lowered.find("c"))), "f32[8,2]");
  EXPECT_EQ(lowered.type(lowered.outputs()[0].value).dtype, DType::kF32);
}

TEST(Bf16, GradientsOfParametersStayF32) {
  const Graph graph =
      differentiate(compute_in_bf16(parse_graph("graph f(x: f32[8,4], w: f32[4,6] @param, y: i32[8]) {\n  z "
                                                "= matmul(x, w)\n  loss, count, lse = cross_entropy(z, y)\n"
                                                "  return loss, count\n}\n",
                                                all_ops())));
  EXPECT_EQ(to_string(graph.type(graph.find("grad.w"))), "f32[4,6]");
  EXPECT_EQ(to_string(graph.type(graph.find("z"))), "bf16[8,6]");
}

}  // namespace
}  // namespace lockstep
