#include "passes/dce.h"

#include "passes/rewrite_case.h"

namespace lockstep::testing {
namespace {

TEST(Dce, RemovesWhatNoOutputNeeds) {
  expect_rewrite(remove_dead_nodes, R"(graph f(x: f32[4]) { a = neg(x)  b = neg(a)  c = exp(x)  return c })",
                 R"(graph f(x: f32[4]) { c = exp(x)  return c })");
}

TEST(Dce, KeepsUpdatesAndInputsNobodyReads) {
  expect_rewrite(
      remove_dead_nodes,
      R"(graph f(x: f32[4], unused: f32[2], w: f32[4] @param) { a = neg(x)  b = add(w, a)  return w <- b })",
      R"(graph f(x: f32[4], unused: f32[2], w: f32[4] @param) { a = neg(x)  b = add(w, a)  return w <- b })");
}

}  // namespace
}  // namespace lockstep::testing
