#include "passes/recompute.h"

#include "passes/rewrite_case.h"

namespace lockstep::testing {
namespace {

auto with_policy(Recompute policy) {
  return [policy](const Graph& graph) {
    PassOptions options;
    options.recompute = policy;
    return recompute(graph, options);
  };
}

// Backward of y = (x w)^2 u: reads h and a, of which a is cheap to make again from h.
constexpr const char* kSquare = R"(graph f(x: f32[64,64], w: f32[64,64] @param, u: f32[64,64] @param,
                                           grad.w: f32[64,64] @grad, grad.u: f32[64,64] @grad) {
  h = matmul(x, w)
  a = mul(h, h)
  y = matmul(a, u)
  loss = sum(y)
  dy = constant() {value=1.0, shape=[64,64]}
  du = matmul(a, dy) {transpose_a=true}
  da = matmul(dy, u) {transpose_b=true}
  dh = mul(da, h)
  dw = matmul(x, dh) {transpose_a=true}
  return loss, grad.w <- dw, grad.u <- du
})";

TEST(Recompute, NoneKeepsEverything) { expect_rewrite(with_policy(Recompute::kNone), kSquare, kSquare); }

// Backward of y = (silu(g) u) w: the readers of silu(g) read g too; that of the product is no pointwise op.
constexpr const char* kGated = R"(graph f(x: f32[64,64], w: f32[64,64] @param, grad.w: f32[64,64] @grad,
                                          grad.x: f32[64,64] @grad) {
  g = matmul(x, w)
  u = matmul(x, w) {transpose_b=true}
  s = silu(g)
  p = mul(s, u)
  y = matmul(p, w)
  loss = sum(y)
  dy = constant() {value=1.0, shape=[64,64]}
  dw = matmul(p, dy) {transpose_a=true}
  dp = matmul(dy, w) {transpose_b=true}
  du = mul(dp, s)
  ds = mul(dp, u)
  dg = silu_grad(g, ds)
  dx = add(du, dg)
  return loss, grad.w <- dw, grad.x <- dx
})";

TEST(Recompute, FusedRunsAgainWhatItsReadersComputeOnTheWay) {
  std::string expected = kGated;
  const auto replace = [&](std::string_view from, std::string_view to) {
    expected.replace(expected.find(from), from.size(), to);
  };
  replace("du = mul(dp, s)", "again.s = silu(g)\n  du = mul(dp, again.s)");
  expect_rewrite(with_policy(Recompute::kFused), kGated, expected);
  expect_rewrite(with_policy(Recompute::kFused), kSquare, kSquare);  // a product reads a
}

TEST(Recompute, CheapRunsMemoryBoundOpsAgainFromWhatIsKeptAnyway) {
  expect_rewrite(with_policy(Recompute::kCheap), kSquare,
                 R"(graph f(x: f32[64,64], w: f32[64,64] @param, u: f32[64,64] @param,
                            grad.w: f32[64,64] @grad, grad.u: f32[64,64] @grad) {
                      h = matmul(x, w)
                      a = mul(h, h)
                      y = matmul(a, u)
                      loss = sum(y)
                      dy = constant() {value=1.0, shape=[64,64]}
                      again.a = mul(h, h)
                      du = matmul(again.a, dy) {transpose_a=true}
                      da = matmul(dy, u) {transpose_b=true}
                      dh = mul(da, h)
                      dw = matmul(x, dh) {transpose_a=true}
                      return loss, grad.w <- dw, grad.u <- du
                    })");
}

TEST(Recompute, CheapDoesNotKeepANewValueForIt) {
  // h is not read by backward: keeping it instead of a would gain nothing.
  const char* text = R"(graph f(x: f32[64,64], w: f32[64,64] @param, grad.w: f32[64,64] @grad) {
    h = matmul(x, w)  a = exp(h)  loss = sum(a)  dw = matmul(x, a) {transpose_a=true}  return loss, grad.w <- dw
  })";
  expect_rewrite(with_policy(Recompute::kCheap), text, text);
}

TEST(Recompute, CheapFollowsViewsToTheirBuffer) {
  expect_rewrite(with_policy(Recompute::kCheap),
                 R"(graph f(x: f32[64,64], grad.x: f32[4096] @grad) {
                      a = exp(x)  r = reshape(a) {shape=[4096]}  loss = sum(r)  dx = neg(r)  return loss, grad.x <- dx
                    })",
                 R"(graph f(x: f32[64,64], grad.x: f32[4096] @grad) {
                      a = exp(x)  r = reshape(a) {shape=[4096]}  loss = sum(r)
                      again.a = exp(x)  again.r = reshape(again.a) {shape=[4096]}  dx = neg(again.r)
                      return loss, grad.x <- dx
                    })");
}

TEST(Recompute, SmallValuesAreKept) {
  const char* text = R"(graph f(x: f32[8], grad.x: f32[8] @grad) {
    a = exp(x)  loss = sum(a)  dx = neg(a)  return loss, grad.x <- dx
  })";
  expect_rewrite(with_policy(Recompute::kCheap), text, text);
}

TEST(Recompute, BlockKeepsMarkedValuesOnly) {
  // Two marked blocks: the first is run again from m0 when backward reaches it, the last is kept.
  expect_rewrite(with_policy(Recompute::kBlock),
                 R"(graph f(x: f32[8,8], w: f32[8,8] @param, grad.w: f32[8,8] @grad) {
                      m0 = checkpoint(x)
                      h0 = matmul(m0, w)
                      a0 = exp(h0)
                      b0 = matmul(a0, w)
                      m1 = checkpoint(b0)
                      h1 = matmul(m1, w)
                      a1 = exp(h1)
                      loss = sum(a1)
                      d1 = mul(a1, h1)
                      p1 = matmul(m1, d1) {transpose_a=true}
                      d0 = matmul(d1, a0)
                      p0 = matmul(h0, d0) {transpose_a=true}
                      p = add(p0, p1)
                      return loss, grad.w <- p
                    })",
                 R"(graph f(x: f32[8,8], w: f32[8,8] @param, grad.w: f32[8,8] @grad) {
                      h0 = matmul(x, w)
                      a0 = exp(h0)
                      b0 = matmul(a0, w)
                      h1 = matmul(b0, w)
                      a1 = exp(h1)
                      loss = sum(a1)
                      d1 = mul(a1, h1)
                      p1 = matmul(b0, d1) {transpose_a=true}
                      again.h0 = matmul(x, w)
                      again.a0 = exp(again.h0)
                      d0 = matmul(d1, again.a0)
                      p0 = matmul(again.h0, d0) {transpose_a=true}
                      p = add(p0, p1)
                      return loss, grad.w <- p
                    })");
}

TEST(Recompute, BlockKeepsWhatSeveralBlocksRead) {
  // t is made in the first block and read by the second: running the second again must not run the first.
  expect_rewrite(with_policy(Recompute::kBlock),
                 R"(graph f(x: f32[8], grad.x: f32[8] @grad) {
                      m0 = checkpoint(x)  t = exp(m0)  a = mul(m0, t)
                      m1 = checkpoint(a)  b = mul(m1, t)  c = tanh(b)
                      m2 = checkpoint(c)  loss = sum(m2)
                      d = mul(b, c)  return loss, grad.x <- d
                    })",
                 R"(graph f(x: f32[8], grad.x: f32[8] @grad) {
                      t = exp(x)  a = mul(x, t)  b = mul(a, t)  c = tanh(b)  loss = sum(c)
                      again.b = mul(a, t)  d = mul(again.b, c)  return loss, grad.x <- d
                    })");
}

TEST(Recompute, MarksGoAwayWhenThereIsNoBackward) {
  expect_rewrite(with_policy(Recompute::kBlock),
                 R"(graph f(x: f32[8]) { m = checkpoint(x)  y = exp(m)  return y })",
                 R"(graph f(x: f32[8]) { y = exp(x)  return y })");
}

}  // namespace
}  // namespace lockstep::testing
