#include "passes/bf16.h"

#include <gtest/gtest.h>

#include "graph/op_def.h"
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

// A parameter that is stored in bf16 is read as it is, without a way through f32.
TEST(Bf16, StoredBf16IsTakenAsItIs) {
  const Graph graph =
      compute_in_bf16(parse_graph("graph f(x: f32[8,4], w: bf16[4,2] @frozen) {\n  v = cast(w) {dtype=f32}\n"
                                  "  y = matmul(x, v)\n  return y\n}\n",
                                  all_ops()));
  const Node& product = graph.nodes()[static_cast<size_t>(graph.producer(graph.find("y")))];
  EXPECT_EQ(graph.name(product.inputs[1]), "w");
}

// Widening a whole table to read some of its rows would cost more than the rows.
TEST(Bf16, RowsOfAStoredTableAreReadAsTheyAre) {
  const Graph graph = differentiate(
      compute_in_bf16(parse_graph("graph f(ids: i32[8], t: bf16[9,4] @param) {\n  w = cast(t) {dtype=f32}\n"
                                  "  x = embedding(w, ids)\n  loss = sum(x)\n  return loss\n}\n",
                                  all_ops())));
  const Node& rows = graph.nodes()[static_cast<size_t>(graph.producer(graph.find("x")))];
  EXPECT_EQ(graph.name(rows.inputs[0]), "t");
  EXPECT_EQ(to_string(graph.type(graph.find("x"))), "bf16[8,4]");
  EXPECT_EQ(to_string(graph.type(graph.find("grad.t"))), "bf16[9,4]");
}

TEST(Bf16, StochasticRoundingTakesTheParametersBeforeTheyAreMoved) {
  const Graph graph =
      compute_in_bf16(parse_graph("graph f(x: f32[8,4], w: f32[2,4] @param, b: f32[2] @param) {\n"
                                  "  t = transpose(w) {permutation=[1,0]}\n"
                                  "  y = matmul(x, t)\n"
                                  "  c = broadcast(b) {shape=[8,2]}\n"
                                  "  z = add(y, c)\n"
                                  "  loss = sum(z)\n"
                                  "  return loss\n"
                                  "}\n",
                                  all_ops()),
                      true);
  std::vector<std::string> rounded;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "round_stochastic") continue;
    rounded.push_back(graph.name(node.inputs[0]));
    EXPECT_EQ(graph.name(node.inputs[1]), kRoundingInput);
  }
  EXPECT_EQ(rounded, (std::vector<std::string>{"w", "b"}));
  // The gradient goes straight through: both parameters have one, in f32.
  const Graph backward = differentiate(graph);
  EXPECT_EQ(to_string(backward.type(backward.find("grad.w"))), "f32[2,4]");
  EXPECT_EQ(to_string(backward.type(backward.find("grad.b"))), "f32[2]");
}

TEST(Bf16, OnlyStochasticRoundingAddsAnInput) {
  const char* text =
      "graph f(x: f32[8,4], w: f32[4,2] @param) {\n  y = matmul(x, w)\n  loss = sum(y)\n  return loss\n}\n";
  EXPECT_FALSE(compute_in_bf16(parse_graph(text, all_ops())).find(kRoundingInput).valid());
  EXPECT_TRUE(compute_in_bf16(parse_graph(text, all_ops()), true).find(kRoundingInput).valid());
}

}  // namespace
}  // namespace lockstep
