#include "passes/fuse.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

std::string fused(const std::string& text, std::vector<std::string>* explanations = nullptr) {
  PassOptions options;
  if (explanations != nullptr)
    options.explain = [=](std::string_view topic, const std::string& line) {
      EXPECT_EQ(topic, "fusion");
      explanations->push_back(line);
    };
  const Graph graph = fuse(parse_graph(text, all_ops()), options);
  verify(graph, Stage::kFused);
  EXPECT_EQ(to_text(parse_graph(to_text(graph), all_ops())), to_text(graph));
  return to_text(graph);
}

TEST(Fuse, ChainWithBroadcastAndTwoResults) {
  EXPECT_EQ(fused(R"(graph f(x: f32[8,64], b: f32[64]) {
  bb = broadcast(b) {shape=[8,64]}
  h = add(x, bb)
  y = gelu(h) {approximate="tanh"}
  return y, h
}
)"),
            R"(graph f(x: f32[8,64], b: f32[64]) {
  h, y = fused(x, b) {program="t0 = add(a0, a1); t1 = gelu(t0) {approximate=\"tanh\"}; return t0, t1", shape=[8,64]}
  return y, h
}
)");
}

TEST(Fuse, ConstantsBecomeNumbersOfTheirType) {
  EXPECT_EQ(fused(R"(graph f(x: bf16[4,8]) {
  c = constant() {value=0.3, dtype=bf16}
  cc = broadcast(c) {shape=[4,8]}
  y = mul(cc, x)
  return y
}
)"),
            R"(graph f(x: bf16[4,8]) {
  y = fused(x) {program="t0 = mul(0.30078125:bf16, a0); return t0", shape=[4,8]}
  return y
}
)");
}

TEST(Fuse, SumJoinsAndItsTermsAreNotStored) {
  EXPECT_EQ(fused(R"(graph f(x: f32[8,64], dy: f32[8,64]) {
  g = mul(x, dy)
  s = sum(g) {axes=[0]}
  return s
}
)"),
            R"(graph f(x: f32[8,64], dy: f32[8,64]) {
  s = fused_sum(x, dy) {program="t0 = mul(a0, a1); t1 = sum(t0) {axes=[0]}; return t1", shape=[8,64]}
  return s
}
)");
}

TEST(Fuse, OneOpStaysAsItIs) {
  const std::string text = R"(graph f(x: f32[8,64], y: f32[8,64]) {
  z = add(x, y)
  return z
}
)";
  EXPECT_EQ(fused(text), text);
}

// h is needed by the product that the addition needs: one node for both would wait for itself.
TEST(Fuse, RefusesRegionsThatAPathLeavesAndReenters) {
  std::vector<std::string> lines;
  const std::string text = R"(graph f(x: f32[8,8], w: f32[8,8]) {
  h = relu(x)
  m = matmul(h, w)
  y = add(h, m)
  return y
}
)";
  EXPECT_EQ(fused(text, &lines), text);
  EXPECT_EQ(lines, std::vector<std::string>{"y and h stay apart: m needs a result and is needed itself"});
}

// The second region waits for the product, so the first cannot take a node that the product's other reader
// feeds.
TEST(Fuse, OtherRegionsCountAsOneNode) {
  std::vector<std::string> lines;
  const std::string text = fused(R"(graph f(x: f32[8,8], w: f32[8,8]) {
  a = relu(x)
  b = exp(x)
  m = matmul(a, w)
  c = tanh(w)
  d = mul(c, m)
  e = add(c, b)
  return d, e
}
)",
                                 &lines);
  EXPECT_EQ(text, R"(graph f(x: f32[8,8], w: f32[8,8]) {
  a, b = fused(x) {program="t0 = relu(a0); t1 = exp(a0); return t0, t1", shape=[8,8]}
  m = matmul(a, w)
  d, e = fused(w, m, b) {program="t0 = tanh(a0); t1 = mul(t0, a1); t2 = add(t0, a2); return t1, t2", shape=[8,8]}
  return d, e
}
)");
  EXPECT_EQ(lines[0], "e and b stay apart: m needs a result and is needed itself");
}

TEST(Fuse, ReaderOfASumStaysOutOfItsRegion) {
  std::vector<std::string> lines;
  EXPECT_EQ(fused(R"(graph f(x: f32[8,32]) {
  e = exp(x)
  s = sum(e) {axes=[1], keep=true}
  ss = broadcast(s) {shape=[8,32]}
  y = div(e, ss)
  return y
}
)",
                  &lines),
            R"(graph f(x: f32[8,32]) {
  s, e = fused_sum(x) {program="t0 = exp(a0); t1 = sum(t0) {axes=[1], keep=true}; return t1, t0", shape=[8,32]}
  y = fused(e, s) {program="t0 = div(a0, a1); return t0", shape=[8,32]}
  return y
}
)");
}

// The comparison could be made with the relu, but its result would have to be kept until backward reads it.
TEST(Fuse, BackwardIsNotDoneInForward) {
  const std::string text = R"(graph f(x: f32[8,8], w: f32[8] @param, grad.w: f32[8,8] @grad) {
  y = relu(x)
  loss = sum(y)
  zero = constant() {value=0.0, shape=[8,8]}
  c = compare(y, zero) {op="gt"}
  g = where(c, x, zero)
  return loss, grad.w <- g
}
)";
  EXPECT_EQ(fused(text), R"(graph f(x: f32[8,8], w: f32[8] @param, grad.w: f32[8,8] @grad) {
  loss, y = fused_sum(x) {program="t0 = relu(a0); t1 = sum(t0); return t1, t0", shape=[8,8]}
  g = fused(y, x) {program="t0 = compare(a0, 0.0) {op=\"gt\"}; t1 = where(t0, a1, 0.0); return t1", shape=[8,8]}
  return loss, grad.w <- g
}
)");
}

TEST(Fuse, WholeNumbersStayExact) {
  std::vector<std::string> lines;
  const std::string text = R"(graph f(x: i32[8], y: i32[8]) {
  a = add(x, y)
  b = mul(a, y)
  return b
}
)";
  EXPECT_EQ(fused(text, &lines), text);
  EXPECT_EQ(lines.at(0), "a stays alone: whole numbers are computed exactly");
}

TEST(Fuse, LimitsOperands) {
  std::string text = "graph f(x0: f32[4]";
  for (int i = 1; i <= 20; ++i) text += fmt::format(", x{}: f32[4]", i);
  text += ") {\n  y0 = relu(x0)\n";
  for (int i = 1; i <= 20; ++i) text += fmt::format("  y{} = add(y{}, x{})\n", i, i - 1, i);
  text += "  return y20\n}\n";
  std::vector<std::string> lines;
  const Graph graph = parse_graph(fused(text, &lines), all_ops());
  EXPECT_EQ(graph.nodes().size(), 2u);
  EXPECT_EQ(graph.nodes()[0].inputs.size(), 16u);
  EXPECT_EQ(lines.at(0), "y16 and y15 stay apart: 17 operands, more than 16");
}

}  // namespace
}  // namespace lockstep
