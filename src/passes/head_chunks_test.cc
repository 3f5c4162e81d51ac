#include "passes/head_chunks.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "passes/autodiff.h"
#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/loss_node.h"
#include "passes/rewrite_case.h"
#include "passes/simplify.h"

namespace lockstep::testing {
namespace {

Graph backward(std::string_view forward, bool accumulate = false) {
  const Graph graph = differentiate(graph_of(forward), {.accumulate = accumulate});
  return remove_dead_nodes(merge_common_subexpressions(simplify(graph, {})));
}

// The most rows that a matrix of so many columns has.
int64_t most_rows(const Graph& graph, int64_t columns) {
  int64_t most = 0;
  for (const Node& node : graph.nodes())
    for (const Value output : node.outputs)
      if (const Shape& shape = graph.type(output).shape; shape.rank() == 2 && shape[1] == columns)
        most = std::max(most, shape[0]);
  return most;
}

void expect_equal(const Graph& graph, const Graph& want, double tolerance) {
  verify(graph, Stage::kDifferentiated);
  const RefTensors inputs = some_inputs(want);
  const auto found = interpret(graph, inputs, {}), wanted = interpret(want, inputs, {});
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    for (int64_t k = 0; k < wanted[i].numel(); ++k)
      ASSERT_NEAR(found[i][k], wanted[i][k], tolerance) << "output " << i << ", element " << k;
}

TEST(HeadChunks, GoForwardAndBackwardOneAfterTheOther) {
  expect_rewrite([](const Graph& graph) { return chunk_head(graph, 2); },
                 R"(graph t(x: f32[4,3], labels: i32[4], w: f32[5,3] @param, grad.w: f32[5,3] @grad) {
  h = tanh(x)
  logits = matmul(h, w) {transpose_b=true}
  loss, count, lse = cross_entropy(logits, labels)
  one = constant() {value=1.0}
  dlogits = cross_entropy_grad(one, logits, labels, lse)
  dh = matmul(dlogits, w)
  dw = matmul(dlogits, h) {transpose_a=true}
  dx = mul(dh, dh)
  return loss, count, dx, grad.w <- dw
}
)",
                 R"(graph t(x: f32[4,3], labels: i32[4], w: f32[5,3] @param, grad.w: f32[5,3] @grad) {
  h = tanh(x)
  one = constant() {value=1.0}
  h.chunk0 = slice(h) {axis=0, begin=0, end=2}
  logits.chunk0 = matmul(h.chunk0, w) {transpose_b=true}
  labels.chunk0 = slice(labels) {axis=0, begin=0, end=2}
  loss.chunk0, loss.chunk0.1, loss.chunk0.2 = cross_entropy(logits.chunk0, labels.chunk0)
  dlogits.chunk0 = cross_entropy_grad(one, logits.chunk0, labels.chunk0, loss.chunk0.2)
  dh.chunk0 = matmul(dlogits.chunk0, w)
  dw.chunk0 = matmul(dlogits.chunk0, h.chunk0) {transpose_a=true}
  h.chunk1 = slice(h) {axis=0, begin=2, end=4}
  logits.chunk1 = matmul(h.chunk1, w) {transpose_b=true}
  labels.chunk1 = slice(labels) {axis=0, begin=2, end=4}
  loss.chunk1, loss.chunk1.1, loss.chunk1.2 = cross_entropy(logits.chunk1, labels.chunk1)
  loss = add(loss.chunk0, loss.chunk1)
  count = add(loss.chunk0.1, loss.chunk1.1)
  dlogits.chunk1 = cross_entropy_grad(one, logits.chunk1, labels.chunk1, loss.chunk1.2)
  dh.chunk1 = matmul(dlogits.chunk1, w)
  dw = matmul(dlogits.chunk1, h.chunk1, dw.chunk0) {transpose_a=true}
  dh = concat(dh.chunk0, dh.chunk1) {axis=0}
  dx = mul(dh, dh)
  return loss, count, dx, grad.w <- dw
}
)",
                 1e-6);
}

// gemma's cap, a bias as of BERT's head, a table that is also the embedding; chunks of 2, 2 and 3 rows.
constexpr const char* kCapped =
    R"(graph t(ids: i32[7], labels: i32[7], w: f32[9,4] @param, b: f32[9] @param) {
  x = embedding(w, ids)
  h = tanh(x)
  y = matmul(h, w) {transpose_b=true}
  bb = broadcast(b) {shape=[7,9]}
  biased = add(y, bb)
  bent = tanh(biased)
  two = constant() {value=2.0}
  twos = broadcast(two) {shape=[7,9]}
  logits = mul(bent, twos)
  loss, count, lse = cross_entropy(logits, labels) {ignore=1, smoothing=0.1}
  return loss, count
}
)";

TEST(HeadChunks, TakeAlongWhatStandsBetweenTheProductAndTheLoss) {
  for (const bool accumulate : {false, true}) {
    const Graph whole = backward(kCapped, accumulate);
    const Graph chunked = chunk_head(whole, 3);
    EXPECT_EQ(most_rows(whole, 9), 7);
    EXPECT_EQ(most_rows(chunked, 9), 3);
    expect_equal(chunked, whole, 1e-12);
  }
}

TEST(HeadChunks, AnEvaluationGoesThroughInTheSameChunks) {
  const Graph whole = graph_of(R"(graph t(h: f32[6,4], labels: i32[6], w: f32[4,9] @param) {
  logits = matmul(h, w)
  loss, count, lse = cross_entropy(logits, labels)
  said = argmax(logits)
  return loss, count, said
}
)");
  const Graph chunked = chunk_head(whole, 2);
  EXPECT_EQ(most_rows(chunked, 9), 3);
  expect_equal(chunked, whole, 1e-12);
}

TEST(HeadChunks, ProductsAreAddedToWhatTheGradientHoldsInItsType) {
  const Graph chunked = chunk_head(
      graph_of(R"(graph t(h: bf16[4,3], labels: i32[4], w: bf16[5,3] @param, grad.w: f32[5,3] @grad) {
  logits = matmul(h, w) {transpose_b=true}
  loss, count, lse = cross_entropy(logits, labels)
  one = constant() {value=1.0}
  dlogits = cross_entropy_grad(one, logits, labels, lse)
  dw = matmul(dlogits, h) {transpose_a=true}
  wide = cast(dw) {dtype=f32}
  sum = add(grad.w, wide)
  return loss, count, grad.w <- sum
}
)"),
      2);
  const std::string text = to_text(chunked);
  EXPECT_NE(
      text.find(R"(dw.chunk0 = matmul(dlogits.chunk0, h.chunk0, grad.w) {transpose_a=true, dtype="f32"})"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(sum = matmul(dlogits.chunk1, h.chunk1, dw.chunk0) {transpose_a=true, dtype="f32"})"),
            std::string::npos)
      << text;
}

// Backward begins behind the first chunk's loss: what later chunks hold is no result of forward.
TEST(HeadChunks, ForwardEndsWithTheFirst) {
  const Graph chunked = chunk_head(backward(kCapped), 3);
  const int32_t loss = loss_node(chunked);
  ASSERT_GE(loss, 0);
  EXPECT_EQ(chunked.name(chunked.nodes()[static_cast<size_t>(loss)].outputs[0]), "loss.chunk0");
}

TEST(HeadChunks, AreRefusedWhereRowsDependOnEachOther) {
  const auto refusal = [](std::string_view text, int64_t chunks) -> std::string {
    try {
      chunk_head(graph_of(text), chunks);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(kCapped, 8), "train.head_chunks is 8, but a microbatch has 7 rows of logits; use less");
  EXPECT_EQ(refusal(R"(graph t(x: f32[4,3], labels: i32[4], w: f32[3,5] @param) {
  y = matmul(x, w)
  logits = softmax(y) {axis=0}
  loss, count, lse = cross_entropy(logits, labels)
  return loss, count
}
)",
                    2),
            "train.head_chunks: logits = softmax(y) {axis=0} does not go row by row");
  EXPECT_EQ(refusal(R"(graph t(x: f32[2,2,3], labels: i32[4], w: f32[3,5] @param) {
  y = matmul(x, w)
  logits = reshape(y) {shape=[4,5]}
  loss, count, lse = cross_entropy(logits, labels)
  return loss, count
}
)",
                    2),
            "train.head_chunks: logits = reshape(y) {shape=[4,5]} does not go row by row");
  EXPECT_EQ(refusal("graph t(x: f32[4,3] @param) {\n  loss = sum(x)\n  return loss\n}\n", 2),
            "train.head_chunks: the loss of t is no cross-entropy; leave it out");
}

}  // namespace
}  // namespace lockstep::testing
