#include "runtime/lower.h"

#include <gtest/gtest.h>

#include "backend/refusing_backend_testing.h"
#include "base/error.h"
#include "graph/text.h"
#include "ops/registry.h"
#include "runtime/plan.h"

namespace lockstep {
namespace {

constexpr const char* kNorm =
    "graph t(x: f32[4,8], w: f32[8], b: f32[8]) {\n"
    "  y, mean, rstd = layer_norm(x, w, b)\n  z = gelu(y)\n  return z\n}\n";

RefusingBackend refusing(std::set<std::string> ops) { return {make_cpu_backend(1), std::move(ops)}; }

std::set<std::string> ops_of(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes()) names.emplace(node.op->name);
  return names;
}

TEST(Lower, AGraphWhoseNodesAllHaveKernelsStaysAsItIs) {
  RefusingBackend backend = refusing({});
  const Lowered lowered = lower(parse_graph(kNorm, all_ops()), backend);
  EXPECT_EQ(to_text(lowered.graph), kNorm);
  EXPECT_TRUE(lowered.replaced.empty());
  EXPECT_EQ(lowered.choices.size(), 2U);
}

TEST(Lower, ReplacesWhatIsRefusedAndNothingElse) {
  RefusingBackend backend = refusing({"layer_norm"});
  const Lowered lowered = lower(parse_graph(kNorm, all_ops()), backend);
  const std::set<std::string> ops = ops_of(lowered.graph);
  EXPECT_FALSE(ops.contains("layer_norm"));
  EXPECT_TRUE(ops.contains("gelu"));
  EXPECT_TRUE(lowered.graph.find("y").valid()) << "results keep their names";
  ASSERT_EQ(lowered.choices.size(), lowered.graph.nodes().size());
  for (size_t n = 0; n < lowered.choices.size(); ++n)
    EXPECT_TRUE(lowered.choices[n].kernel != nullptr || lowered.graph.nodes()[n].op->traits.view);
  ASSERT_EQ(lowered.replaced.size(), 1U);
  EXPECT_EQ(lowered.replaced[0].refusals[0].kernel, "test.layer_norm");
}

TEST(Lower, GoesOnUntilEverythingHasAKernel) {
  RefusingBackend backend = refusing({"layer_norm", "mean"});
  const Lowered lowered = lower(parse_graph(kNorm, all_ops()), backend);
  EXPECT_FALSE(ops_of(lowered.graph).contains("mean"));
  EXPECT_EQ(lowered.replaced.size(), 3U);  // layer_norm, and its two means
}

// Nobody reads mean and rstd above, so that they are not even brought into shape.
TEST(Lower, ResultsThatNobodyReadsAreNotComputed) {
  RefusingBackend backend = refusing({"layer_norm"});
  EXPECT_FALSE(ops_of(lower(parse_graph(kNorm, all_ops()), backend).graph).contains("reshape"));
}

TEST(Lower, OneMessageNamesEverythingThatIsMissing) {
  RefusingBackend backend = refusing({"matmul", "layer_norm", "rsqrt"});
  const char* text =
      "graph t(x: f32[4,4], w: f32[4], b: f32[4]) {\n  p = matmul(x, x)\n  q = matmul(p, x)\n"
      "  y, mean, rstd = layer_norm(q, w, b)\n  return y\n}\n";
  try {
    lower(parse_graph(text, all_ops()), backend);
    FAIL() << "matmul and rsqrt have no decomposition";
  } catch (const UserError& error) {
    const std::string said = error.what();
    EXPECT_TRUE(said.starts_with("the refusing backend cannot run p = matmul(x, x)")) << said;
    EXPECT_NE(said.find("\n  test.matmul: not written yet\nnor "), std::string::npos) << said;
    EXPECT_NE(said.find("test.rsqrt: not written yet"), std::string::npos) << said;
    EXPECT_EQ(said.find("q = matmul"), std::string::npos) << "an op is named once: " << said;
  }
}

TEST(Lower, TheTableOfKernelsShowsWhatWasLowered) {
  RefusingBackend backend = refusing({"layer_norm"});
  const std::string table = kernel_table(make_plan(parse_graph(kNorm, all_ops()), backend));
  EXPECT_NE(table.find("y, mean, rstd = layer_norm(x, w, b)"), std::string::npos) << table;
  EXPECT_NE(table.find("test.layer_norm refused: not written yet"), std::string::npos) << table;
}

}  // namespace
}  // namespace lockstep
