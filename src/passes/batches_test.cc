#include "passes/batches.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "passes/gather_params.h"
#include "passes/rewrite_case.h"

namespace lockstep {
namespace {

using testing::graph_of;

PassOptions three_units(int64_t batches) {
  PassOptions options;
  options.units = {{1024, {{"w", 0}}}, {1024, {{"v", 0}}}, {1024, {{"u", 0}}}};
  options.batches = batches;
  return options;
}

int64_t gathers(const Graph& graph) {
  return std::ranges::count_if(graph.nodes(),
                               [](const Node& node) { return node.op->name == "gather_unit_start"; });
}

constexpr std::string_view kChain =
    R"(graph f(x: f32[4,8], w: f32[8,8] @param, v: f32[8,8] @param, u: f32[8,8] @param) {
  h = matmul(x, w)
  g = gelu(h)
  y = matmul(g, v)
  v16 = cast(v) {dtype=bf16}
  y16 = cast(y) {dtype=bf16}
  z = matmul(y16, v16)
  t = cast(z) {dtype=f32}
  s = matmul(t, u)
  return s, g
})";

TEST(Batches, GoThroughAUnitTogether) {
  EXPECT_EQ(
      to_text(run_batches_together(graph_of(kChain), three_units(2))),
      to_text(graph_of(
          R"(graph f(x: f32[4,8], x.batch1: f32[4,8], w: f32[8,8] @param, v: f32[8,8] @param, u: f32[8,8] @param) {
  h = matmul(x, w)
  g = gelu(h)
  h_1 = matmul(x.batch1, w)
  g_1 = gelu(h_1)
  y = matmul(g, v)
  v16 = cast(v) {dtype=bf16}
  y16 = cast(y) {dtype=bf16}
  z = matmul(y16, v16)
  t = cast(z) {dtype=f32}
  y_1 = matmul(g_1, v)
  y16_1 = cast(y_1) {dtype=bf16}
  z_1 = matmul(y16_1, v16)
  t_1 = cast(z_1) {dtype=f32}
  s = matmul(t, u)
  s_1 = matmul(t_1, u)
  return s, g, s_1, g_1
})")));
}

TEST(Batches, GatherEachUnitOnce) {
  const PassOptions options = three_units(5);
  const Graph graph = gather_params(run_batches_together(graph_of(kChain), options), options);
  verify(graph, Stage::kScheduled);
  EXPECT_EQ(gathers(graph), 3);
  EXPECT_EQ(std::ranges::count_if(graph.nodes(), [](const Node& node) { return node.op->name == "matmul"; }),
            5 * 4);
}

// Before any batch goes on to what reads the second of them alone.
TEST(Batches, GatherUnitsOnceThatOneNodeReads) {
  constexpr std::string_view kBoth =
      R"(graph f(x: f32[8,8], w: f32[8,8] @param, v: f32[8,8] @param, u: f32[8,8] @param) {
  h = matmul(x, w)
  g = fused(h, w, v) {program="t0 = add(a0, a1); t1 = add(t0, a2); return t1", shape=[8,8]}
  y = matmul(g, v)
  z = matmul(y, u)
  return z
})";
  const PassOptions options = three_units(4);
  EXPECT_EQ(gathers(gather_params(run_batches_together(graph_of(kBoth), options), options)), 3);
}

// Each batch gets what it would get alone.
TEST(Batches, AreIndependent) {
  const Graph one = graph_of(kChain);
  const Graph three = run_batches_together(one, three_units(3));
  const RefTensors inputs = testing::some_inputs(three);
  const std::vector<RefTensor> together = interpret(three, inputs);
  for (int64_t n = 0; n < 3; ++n) {
    RefTensors alone = inputs;
    alone["x"] = inputs.at(batch_input("x", n));
    const std::vector<RefTensor> outputs = interpret(one, alone);
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(together.at(2 * static_cast<size_t>(n) + i).data, outputs.at(i).data);
  }
}

}  // namespace
}  // namespace lockstep
