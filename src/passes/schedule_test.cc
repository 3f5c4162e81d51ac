#include "passes/schedule.h"

#include <map>

#include "passes/live_bytes.h"
#include "passes/rewrite_case.h"

namespace lockstep::testing {
namespace {

Graph scheduled(const Graph& graph) { return schedule(graph, {}); }

TEST(LiveBytes, CountsWhatIsAliveTogether) {
  // b cannot share a's buffer, since c still reads a; c takes over one of them.
  EXPECT_EQ(peak_live_bytes(
                graph_of(R"(graph f(x: f32[100]) { a = exp(x)  b = neg(a)  c = mul(a, b)  return c })")),
            800);
}

TEST(LiveBytes, ViewsAndResultsInPlaceTakeNothing) {
  EXPECT_EQ(peak_live_bytes(graph_of(R"(graph f(x: f32[100]) {
    a = exp(x)  b = reshape(a) {shape=[10,10]}  c = neg(b)  d = reshape(c) {shape=[100]}  return d
  })")),
            400);
}

TEST(LiveBytes, AnUpdateIsWrittenIntoItsTarget) {
  EXPECT_EQ(peak_live_bytes(graph_of(R"(graph f(w: f32[100] @param) { a = neg(w)  return w <- a })")), 0);
  // Somebody reads the old value later: the new one needs a place of its own until then.
  EXPECT_EQ(peak_live_bytes(graph_of(R"(graph f(w: f32[100] @param) {
    a = neg(w)  s = sum(w)  return s, w <- a
  })")),
            404);
}

TEST(LiveBytes, AnotherOrderCountsAsAGraphInThatOrder) {
  const Graph graph = graph_of(R"(graph f(w: f32[100] @param, x: f32[100]) {
    a = exp(x)  b = reshape(a) {shape=[10,10]}  c = neg(w)  s = sum(w)  d = sum(b)  return s, d, w <- c
  })");
  const std::vector<int32_t> order = {3, 0, 1, 4, 2};
  const Graph ordered = graph_of(R"(graph f(w: f32[100] @param, x: f32[100]) {
    s = sum(w)  a = exp(x)  b = reshape(a) {shape=[10,10]}  d = sum(b)  c = neg(w)  return s, d, w <- c
  })");
  EXPECT_EQ(peak_live_bytes(graph, order), peak_live_bytes(ordered));
  EXPECT_NE(peak_live_bytes(graph, order), peak_live_bytes(graph));
}

TEST(Schedule, AddsGradientsUpAsSoonAsTheyAreKnown) {
  expect_rewrite(scheduled,
                 R"(graph f(x: f32[1024], grad.a: f32[1024] @grad, grad.b: f32[1024] @grad) {
                      da = exp(x)  db = tanh(x)  na = add(grad.a, da)  nb = add(grad.b, db)
                      return grad.a <- na, grad.b <- nb
                    })",
                 R"(graph f(x: f32[1024], grad.a: f32[1024] @grad, grad.b: f32[1024] @grad) {
                      da = exp(x)  na = add(grad.a, da)  db = tanh(x)  nb = add(grad.b, db)
                      return grad.a <- na, grad.b <- nb
                    })");
}

TEST(Schedule, ReducesOneBranchBeforeItStartsTheNext) {
  expect_rewrite(scheduled,
                 R"(graph f(x: f32[64,64]) {
                      a = exp(x)  b = tanh(x)  c = neg(x)  p = sum(a)  q = sum(b)  r = sum(c)
                      s = add(p, q)  t = add(s, r)  return t
                    })",
                 R"(graph f(x: f32[64,64]) {
                      a = exp(x)  p = sum(a)  b = tanh(x)  q = sum(b)  s = add(p, q)  c = neg(x)  r = sum(c)
                      t = add(s, r)  return t
                    })");
}

TEST(Schedule, RecomputedValuesWaitForTheirReader) {
  // Running again.a right after loss would not grow the live bytes, but hold its result for longer.
  expect_rewrite(scheduled,
                 R"(graph f(x: f32[64,64]) {
                      h = exp(x)  a = mul(h, x)  loss = sum(a)  again.a = mul(h, x)  g = neg(x)  d = mul(again.a, g)
                      return loss, d
                    })",
                 R"(graph f(x: f32[64,64]) {
                      h = exp(x)  a = mul(h, x)  loss = sum(a)  g = neg(x)  again.a = mul(h, x)  d = mul(again.a, g)
                      return loss, d
                    })");
}

TEST(Schedule, ConstantsAndViewsStandBesideTheirReader) {
  expect_rewrite(scheduled,
                 R"(graph f(x: f32[64]) {
                      c = constant() {value=2.0, shape=[8,8]}  v = reshape(x) {shape=[8,8]}  a = exp(x)
                      b = reshape(a) {shape=[8,8]}  d = mul(b, c)  e = mul(d, v)  return e
                    })",
                 R"(graph f(x: f32[64]) {
                      a = exp(x)  c = constant() {value=2.0, shape=[8,8]}  b = reshape(a) {shape=[8,8]}
                      d = mul(b, c)  v = reshape(x) {shape=[8,8]}  e = mul(d, v)  return e
                    })");
}

TEST(Schedule, TransfersStartEarlyEndLateAndKeepTheirOrder) {
  const Graph graph = scheduled(graph_of(R"(graph f(x: f32[64], y: f32[64]) {
    a = exp(x)
    b = tanh(y)
    c = neg(x)
    bs = all_reduce_start(b) {group="data", size=2}
    br = all_reduce_done(bs, b)
    as = all_reduce_start(a) {group="data", size=2}
    ar = all_reduce_done(as, a)
    d = mul(c, c)
    e = mul(d, br)
    return e, ar
  })"));
  std::map<std::string, int> place;
  int next = 0;
  for (const Node& node : graph.nodes()) place[graph.name(node.outputs[0])] = next++;
  EXPECT_LT(place["bs"], place["as"]);
  EXPECT_EQ(place["bs"], place["b"] + 1);
  EXPECT_LT(place["bs"], place["c"]);
  EXPECT_EQ(place["br"], place["e"] - 1);
  EXPECT_GT(place["ar"], place["e"]);
}

TEST(Schedule, NeverWorseThanProgramOrder) {
  const Graph graph = graph_of(R"(graph f(x: f32[64,64], w: f32[64,64] @param) {
    a = matmul(x, w)  b = exp(a)  c = matmul(b, w)  d = mul(c, a)  e = sum(d)  return e
  })");
  EXPECT_LE(peak_live_bytes(scheduled(graph)), peak_live_bytes(graph));
}

}  // namespace
}  // namespace lockstep::testing
