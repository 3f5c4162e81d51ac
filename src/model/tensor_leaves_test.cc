// Models before and after they are split into leaves, as text; and what is refused.
#include "model/tensor_leaves.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "model/tabular.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

Model model_of(std::string_view text) {
  Model model{parse_graph(text, all_ops()), {}, 1, 0, {}};
  for (const GraphInput& input : model.graph.inputs())
    if (input.role == Role::kParam) model.params.push_back({.name = model.graph.name(input.value)});
  return model;
}

void expect_split(const TensorShare& share, std::string_view before, std::string_view after) {
  const LeafModel split = split_into_leaves(model_of(before), share);
  EXPECT_EQ(to_text(split.model.graph), to_text(parse_graph(after, all_ops())));
}

constexpr std::string_view kMlp =
    R"(graph f(x: f32[4,8], w: f32[8,16] @param, b: f32[16] @param, v: f32[16,2] @param) {
      h = matmul(x, w)
      row = broadcast(b) {shape=[4,16]}
      c = add(h, row)
      a = gelu(c)
      y = matmul(a, v)
      loss = sum(y)
      return loss
    })";

TEST(TensorLeaves, ColumnsThenRowsAreOneRegion) {
  expect_split(
      {.leaves = 2}, kMlp,
      R"(graph f(x: f32[4,8], w.leaf0: f32[8,8] @param, w.leaf1: f32[8,8] @param, b.leaf0: f32[8] @param,
        b.leaf1: f32[8] @param, v.leaf0: f32[8,2] @param, v.leaf1: f32[8,2] @param) {
      x.leaf0, x.leaf1 = spread(x) {leaves=2, group="tensor", size=1}
      h.leaf0 = matmul(x.leaf0, w.leaf0)
      h.leaf1 = matmul(x.leaf1, w.leaf1)
      row.leaf0 = broadcast(b.leaf0) {shape=[4,8]}
      row.leaf1 = broadcast(b.leaf1) {shape=[4,8]}
      c.leaf0 = add(h.leaf0, row.leaf0)
      c.leaf1 = add(h.leaf1, row.leaf1)
      a.leaf0 = gelu(c.leaf0)
      a.leaf1 = gelu(c.leaf1)
      y.leaf0 = matmul(a.leaf0, v.leaf0)
      y.leaf1 = matmul(a.leaf1, v.leaf1)
      y = leaf_sum(y.leaf0, y.leaf1) {group="tensor", size=1}
      loss = sum(y)
      return loss
    })");
}

// Of four leaves the second of two workers has the last two.
TEST(TensorLeaves, AWorkerHasItsLeavesAlone) {
  expect_split(
      {4, 2, 1}, kMlp,
      R"(graph f(x: f32[4,8], w.leaf2: f32[8,4] @param, w.leaf3: f32[8,4] @param, b.leaf2: f32[4] @param,
        b.leaf3: f32[4] @param, v.leaf2: f32[4,2] @param, v.leaf3: f32[4,2] @param) {
      x.leaf2, x.leaf3 = spread(x) {leaves=2, group="tensor", size=2}
      h.leaf2 = matmul(x.leaf2, w.leaf2)
      h.leaf3 = matmul(x.leaf3, w.leaf3)
      row.leaf2 = broadcast(b.leaf2) {shape=[4,4]}
      row.leaf3 = broadcast(b.leaf3) {shape=[4,4]}
      c.leaf2 = add(h.leaf2, row.leaf2)
      c.leaf3 = add(h.leaf3, row.leaf3)
      a.leaf2 = gelu(c.leaf2)
      a.leaf3 = gelu(c.leaf3)
      y.leaf2 = matmul(a.leaf2, v.leaf2)
      y.leaf3 = matmul(a.leaf3, v.leaf3)
      y = leaf_sum(y.leaf2, y.leaf3) {group="tensor", size=2}
      loss = sum(y)
      return loss
    })");
}

// A norm over all columns ends no region: what feeds it is left whole.
TEST(TensorLeaves, WhatCannotWorkOnPartsIsLeftWhole) {
  const LeafModel split = split_into_leaves(
      model_of(
          R"(graph f(x: f32[4,8], u: f32[8,8] @param, g: f32[8] @param, w: f32[8,16] @param, v: f32[16,2] @param) {
      p = matmul(x, u)
      n, r = rms_norm(p, g)
      h = matmul(n, w)
      y = matmul(h, v)
      loss = sum(y)
      return loss
    })"),
      {.leaves = 2});
  std::vector<std::string> names;
  for (const ParamInit& param : split.model.params) names.push_back(param.name);
  EXPECT_EQ(names, (std::vector<std::string>{"u", "g", "w.leaf0", "w.leaf1", "v.leaf0", "v.leaf1"}));
}

std::map<std::string, int> axes_of(const Model& model, int64_t leaves) {
  std::map<std::string, int> axes;
  for (const auto& [name, piece] : split_into_leaves(model, {.leaves = leaves}).pieces)
    axes[piece.param] = piece.cut.axis;
  return axes;
}

TEST(TensorLeaves, FamiliesAreSplitByHeadsAndHiddenUnits) {
  const auto gpt = axes_of(
      build_gpt({.layers = 1, .dim = 16, .heads = 4, .vocab = 31, .batch = 2, .seq = 8, .dropout = 0.1}), 4);
  EXPECT_EQ(gpt, (std::map<std::string, int>{{"h.0.attn.c_attn.weight", 1},
                                             {"h.0.attn.c_attn.bias", 0},
                                             {"h.0.attn.c_proj.weight", 0},
                                             {"h.0.mlp.c_fc.weight", 1},
                                             {"h.0.mlp.c_fc.bias", 0},
                                             {"h.0.mlp.c_proj.weight", 0}}));
  const auto llama = axes_of(build_llama({.layers = 1,
                                          .dim = 16,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .hidden = 24,
                                          .vocab = 31,
                                          .batch = 2,
                                          .seq = 8}),
                             2);
  std::map<std::string, int> expected;
  for (const char* columns :
       {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"})
    expected[fmt::format("model.layers.0.{}.weight", columns)] = 0;
  for (const char* rows : {"self_attn.o_proj", "mlp.down_proj"})
    expected[fmt::format("model.layers.0.{}.weight", rows)] = 1;
  EXPECT_EQ(llama, expected);
  EXPECT_EQ(axes_of(build_encoder({.layers = 1,
                                   .dim = 16,
                                   .heads = 4,
                                   .hidden = 32,
                                   .vocab = 31,
                                   .classes = 3,
                                   .batch = 2,
                                   .seq = 8,
                                   .dropout = 0.1}),
                    2)
                .size(),
            10U);  // weights of q, k, v, out, in and out of the hidden units; biases of columns
}

constexpr std::string_view kWords =
    R"(graph f(ids: i32[6], t: f32[8,4] @param, w: f32[4,8] @param, v: f32[8,4] @param, labels: i32[6]) {
      x = embedding(t, ids) {padding=5}
      h = matmul(x, w)
      y = matmul(h, v)
      logits = matmul(y, t) {transpose_b=true}
      loss, count, lse = cross_entropy(logits, labels) {ignore=-1}
      return loss, count
    })";

// Tied or not: a table's leaf has rows, which are columns of the head.
TEST(TensorLeaves, TheVocabularyIsCutAtBothEnds) {
  expect_split(
      {4, 2, 1}, kWords,
      R"(graph f(ids: i32[6], t.leaf2: f32[2,4] @param, t.leaf3: f32[2,4] @param, w.leaf2: f32[4,2] @param,
        w.leaf3: f32[4,2] @param, v.leaf2: f32[2,4] @param, v.leaf3: f32[2,4] @param, labels: i32[6]) {
      x.leaf2 = embedding(t.leaf2, ids) {padding=5, first=4, whole=8}
      x.leaf3 = embedding(t.leaf3, ids) {padding=5, first=6, whole=8}
      x = leaf_sum(x.leaf2, x.leaf3) {group="tensor", size=2}
      x.leaf2_1, x.leaf3_1 = spread(x) {leaves=2, group="tensor", size=2}
      h.leaf2 = matmul(x.leaf2_1, w.leaf2)
      h.leaf3 = matmul(x.leaf3_1, w.leaf3)
      y.leaf2 = matmul(h.leaf2, v.leaf2)
      y.leaf3 = matmul(h.leaf3, v.leaf3)
      y = leaf_sum(y.leaf2, y.leaf3) {group="tensor", size=2}
      y.leaf2_1, y.leaf3_1 = spread(y) {leaves=2, group="tensor", size=2}
      logits.leaf2 = matmul(y.leaf2_1, t.leaf2) {transpose_b=true}
      logits.leaf3 = matmul(y.leaf3_1, t.leaf3) {transpose_b=true}
      loss, count, lse = cross_entropy_leaves(logits.leaf2, logits.leaf3, labels)
          {ignore=-1, leaves=2, first=4, classes=8, group="tensor", size=2}
      return loss, count
    })");
}

std::map<std::string, int> axes_of_gpt(int64_t vocab) {
  return axes_of(
      build_gpt({.layers = 1, .dim = 16, .heads = 4, .vocab = vocab, .batch = 2, .seq = 8, .dropout = 0.1}),
      4);
}

TEST(TensorLeaves, AVocabularyIsCutWhereThatIsEvenAndWorthIt) {
  const auto llama = [](int64_t vocab, bool tied) {
    return axes_of(build_llama({.layers = 1,
                                .dim = 16,
                                .heads = 4,
                                .kv_heads = 4,
                                .hidden = 24,
                                .vocab = vocab,
                                .batch = 2,
                                .seq = 8,
                                .tied = tied}),
                   4);
  };
  EXPECT_EQ(axes_of_gpt(32).at("wte.weight"), 0);
  EXPECT_EQ(llama(32, false).at("model.embed_tokens.weight"), 0);
  EXPECT_EQ(llama(32, false).at("lm_head.weight"), 0);
  EXPECT_EQ(llama(32, true).at("model.embed_tokens.weight"), 0);
  for (const int64_t vocab : {34, 12}) {  // four leaves do not divide it; fewer rows than columns
    EXPECT_FALSE(axes_of_gpt(vocab).contains("wte.weight"));
    EXPECT_FALSE(llama(vocab, false).contains("model.embed_tokens.weight"));
    EXPECT_FALSE(llama(vocab, false).contains("lm_head.weight"));
  }
}

// Logits may be scaled, bent or biased before the loss.
TEST(TensorLeaves, TheHeadIsARegionLikeOthers) {
  constexpr std::string_view kHead =
      R"(graph f(x: f32[6,4], w: f32[4,8] @param, v: f32[8,4] @param, t: f32[4,8] @param, bias: f32[8] @param,
        labels: i32[6]) {
      h = matmul(x, w)
      y = matmul(h, v)
      plain = matmul(y, t)
      row = broadcast(bias) {shape=[6,8]}
      biased = add(plain, row)
      third = constant() {value=0.3}
      all = broadcast(third) {shape=[6,8]}
      scaled = mul(biased, all)
      bent = tanh(scaled)
      loss, count, lse = cross_entropy(bent, labels)
      return loss, count
    })";
  EXPECT_EQ(axes_of(model_of(kHead), 2),
            (std::map<std::string, int>{{"w", 1}, {"v", 0}, {"t", 1}, {"bias", 0}}));
}

// What reads all of a table, or all columns of logits, keeps it whole for everybody.
TEST(TensorLeaves, ATableThatIsReadWholeIsLeftWhole) {
  const auto axes = [](std::string text, std::string_view from, std::string_view to) {
    text.replace(text.find(from), from.size(), to);
    return axes_of(model_of(text), 2);
  };
  const std::map<std::string, int> products = {{"w", 1}, {"v", 0}};
  EXPECT_EQ(axes(std::string(kWords), "return loss, count", "sum = sum(t)\n return loss, count, sum"),
            products);
  EXPECT_EQ(
      axes(std::string(kWords), "return loss, count", "best = argmax(logits)\n return loss, count, best"),
      products);
}

// A leaf of q, k and v in one matrix has its heads of all three.
TEST(TensorLeaves, APieceIsRunsOfItsParameter) {
  const LeafPiece piece{"w", Shape{2, 12}, {1, {4, 4, 4}}, 1, 2};
  EXPECT_EQ(piece.shape(), (Shape{2, 6}));
  std::vector<std::tuple<int64_t, int64_t, int64_t>> runs;
  piece.for_runs([&](int64_t first, int64_t at, int64_t count) { runs.emplace_back(first, at, count); });
  EXPECT_EQ(runs, (std::vector<std::tuple<int64_t, int64_t, int64_t>>{
                      {2, 0, 2}, {6, 2, 2}, {10, 4, 2}, {14, 6, 2}, {18, 8, 2}, {22, 10, 2}}));
}

std::string error_of(const Model& model, int64_t leaves) {
  try {
    split_into_leaves(model, {.leaves = leaves});
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TensorLeaves, SaysWhatWouldDo) {
  EXPECT_EQ(error_of(build_llama({.layers = 1,
                                  .dim = 16,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .hidden = 24,
                                  .vocab = 31,
                                  .batch = 2,
                                  .seq = 8}),
                     4),
            "strategy.tensor_leaves 4 does not divide the 2 heads that "
            "model.layers.0.self_attn.k_proj.weight makes; use 2");
  EXPECT_EQ(
      error_of(build_gpt({.layers = 1, .dim = 24, .heads = 3, .vocab = 31, .batch = 2, .seq = 8}), 2),
      "strategy.tensor_leaves 2 does not divide the 3 heads that h.0.attn.c_attn.weight makes; use 1 or "
      "3");
}

TEST(TensorLeaves, DegreesAreSubtrees) {
  EXPECT_TRUE(TensorShare::is_possible(4, 2));
  EXPECT_TRUE(TensorShare::is_possible(6, 3));
  EXPECT_TRUE(TensorShare::is_possible(6, 1));
  EXPECT_FALSE(TensorShare::is_possible(6, 2));  // three leaves each, which are no subtree of six
  EXPECT_FALSE(TensorShare::is_possible(4, 3));
}

}  // namespace
}  // namespace lockstep
