#include "passes/product_epilogues.h"

#include "passes/rewrite_case.h"

namespace lockstep::testing {
namespace {

Graph with_epilogues(const Graph& graph) {
  PassOptions options;
  options.product_epilogues = true;
  return take_product_epilogues(graph, options);
}

constexpr double kOneStep = 3.2e-2;  // of bf16 at values up to 8

TEST(ProductEpilogues, ABiasIsTakenAlongWhetherItIsCastBeforeOrAfter) {
  expect_rewrite(with_epilogues,
                 R"(graph f(x: bf16[2,3,4], w: bf16[4,5], b: f32[5], c: bf16[5]) {
                      m = matmul(x, w)  r = broadcast(b) {shape=[2,3,5]}  k = cast(r) {dtype=bf16}  y = add(m, k)
                      n = matmul(x, w)  s = broadcast(c) {shape=[2,3,5]}  z = add(s, n)
                      return y, z
                    })",
                 R"(graph f(x: bf16[2,3,4], w: bf16[4,5], b: f32[5], c: bf16[5]) {
                      cast = cast(b) {dtype=bf16}  y = linear(x, w, cast)  z = linear(x, w, c)  return y, z
                    })",
                 kOneStep);
}

TEST(ProductEpilogues, SoIsTheResidualThatFollows) {
  expect_rewrite(with_epilogues,
                 R"(graph f(x: bf16[6,4], w: bf16[5,4], b: bf16[5], r: bf16[6,5]) {
                      m = matmul(x, w) {transpose_b=true}  s = broadcast(b) {shape=[6,5]}  t = add(m, s)  y = add(r, t)
                      return y
                    })",
                 R"(graph f(x: bf16[6,4], w: bf16[5,4], b: bf16[5], r: bf16[6,5]) {
                      y = linear(x, w, b, r) {transpose_b=true}  return y
                    })",
                 kOneStep);
}

TEST(ProductEpilogues, SoIsWhatIsAddedWithoutABias) {
  expect_rewrite(with_epilogues,
                 R"(graph f(x: bf16[2,3,4], w: bf16[5,4], r: bf16[2,3,5]) {
                      m = matmul(x, w) {transpose_b=true}  y = add(r, m)  return y
                    })",
                 R"(graph f(x: bf16[2,3,4], w: bf16[5,4], r: bf16[2,3,5]) {
                      y = matmul(x, w, r) {transpose_b=true}  return y
                    })",
                 kOneStep);
}

// Of a layer and its matrices of LoRA, these read what the layer wrote.
TEST(ProductEpilogues, OfTwoProductsTheNarrowerTakesTheOther) {
  for (const char* sum : {"add(m, k)", "add(k, m)"})
    expect_rewrite(with_epilogues,
                   fmt::format(R"(graph f(x: bf16[6,8], w: bf16[8,5], s: bf16[6,2], b: bf16[2,5]) {{
                                    m = matmul(x, w)  k = matmul(s, b)  y = {}  return y
                                  }})",
                               sum)
                       .c_str(),
                   R"(graph f(x: bf16[6,8], w: bf16[8,5], s: bf16[6,2], b: bf16[2,5]) {
                        m = matmul(x, w)  y = matmul(s, b, m)  return y
                      })",
                   kOneStep);
}

TEST(ProductEpilogues, TheSlopeOfGeluIsTakenAlong) {
  expect_rewrite(
      with_epilogues,
      R"(graph f(d: bf16[6,4], w: bf16[4,5], p: bf16[6,5]) {
                      m = matmul(d, w)  y = gelu_grad(p, m) {approximate="tanh"}  return y
                    })",
      R"(graph f(d: bf16[6,4], w: bf16[4,5], p: bf16[6,5]) { y = matmul_gelu_grad(d, w, p)  return y })",
      kOneStep);
}

TEST(ProductEpilogues, WhatSomebodyElseReadsOrIsNoBiasStays) {
  for (const char* text : {R"(graph f(x: bf16[6,4], w: bf16[4,5], b: bf16[5]) {
             m = matmul(x, w)  s = broadcast(b) {shape=[6,5]}  y = add(m, s)  return m, y
           })",
                           R"(graph f(x: bf16[6,4], w: bf16[4,6], b: bf16[6,1]) {
             m = matmul(x, w)  s = broadcast(b) {shape=[6,6]}  y = add(m, s)  return y
           })",
                           R"(graph f(x: f32[6,4], w: f32[4,5], b: f32[5]) {
             m = matmul(x, w)  s = broadcast(b) {shape=[6,5]}  y = add(m, s)  return y
           })"})
    expect_rewrite(with_epilogues, text, text);
}

TEST(ProductEpilogues, NothingHappensForABackendWithoutThem) {
  const Graph graph = graph_of(R"(graph f(x: bf16[6,4], w: bf16[4,5], b: bf16[5]) {
    m = matmul(x, w)  s = broadcast(b) {shape=[6,5]}  y = add(m, s)  return y
  })");
  EXPECT_EQ(to_text(take_product_epilogues(graph, {})), to_text(graph));
}

}  // namespace
}  // namespace lockstep::testing
