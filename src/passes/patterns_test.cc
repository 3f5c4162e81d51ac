#include "passes/patterns.h"

#include "passes/autodiff.h"
#include "passes/rewrite_case.h"
#include "passes/simplify.h"

namespace lockstep::testing {
namespace {

Graph library(const Graph& graph) { return apply_library_patterns(graph, {}); }
Graph norms(const Graph& graph) { return apply_norm_patterns(graph, {}); }
// The transposes that patterns emit meet those of the graph in simplify.
Graph imported(const Graph& graph) { return simplify(apply_import_patterns(graph, {})); }

constexpr double kRounding = 1e-6;

TEST(Patterns, AGradientIsAccumulatedIntoItsDestinationWhereTheProductStood) {
  expect_rewrite(library,
                 R"(graph f(a: f32[8,4], d: f32[8,2], grad.w: f32[4,2] @grad) {
                      dw = matmul(a, d) {transpose_a=true}  e = exp(d)  n = add(grad.w, dw)  return e, grad.w <- n
                    })",
                 R"(graph f(a: f32[8,4], d: f32[8,2], grad.w: f32[4,2] @grad) {
                      n = matmul(a, d, grad.w) {transpose_a=true}  e = exp(d)  return e, grad.w <- n
                    })",
                 kRounding);
}

TEST(Patterns, ContributionsToOneGradientAreAccumulated) {
  expect_rewrite(library,
                 R"(graph f(x: f32[4,4], u: f32[4,4], v: f32[4,4], grad.x: f32[4,4] @grad) {
                      loss = sum(x)  a = matmul(x, u)  b = matmul(x, v)  s = add(a, b)  n = neg(s)
                      return loss, grad.x <- n
                    })",
                 R"(graph f(x: f32[4,4], u: f32[4,4], v: f32[4,4], grad.x: f32[4,4] @grad) {
                      loss = sum(x)  a = matmul(x, u)  s = matmul(x, v, a)  n = neg(s)  return loss, grad.x <- n
                    })",
                 kRounding);
}

TEST(Patterns, RowsOfATiedTableAreAddedToItsOtherGradient) {
  expect_rewrite(library,
                 R"(graph f(x: f32[4,2], d: f32[4,3], ids: i32[4], grad.t: f32[3,2] @grad) {
                      loss = sum(x)  a = matmul(d, x) {transpose_a=true}  b = embedding_grad(x, ids) {rows=3}  s = add(a, b)
                      return loss, grad.t <- s
                    })",
                 R"(graph f(x: f32[4,2], d: f32[4,3], ids: i32[4], grad.t: f32[3,2] @grad) {
                      loss = sum(x)  a = matmul(d, x) {transpose_a=true}  s = embedding_grad(x, ids, a) {rows=3}
                      return loss, grad.t <- s
                    })",
                 kRounding);
}

TEST(Patterns, AProductThatSomebodyElseReadsStaysApart) {
  const char* text = R"(graph f(a: f32[4,4], grad.w: f32[4,4] @grad) {
    dw = matmul(a, a)  n = add(grad.w, dw)  return dw, grad.w <- n
  })";
  expect_rewrite(library, text, text);
}

TEST(Patterns, TransposesGoIntoTheProduct) {
  expect_rewrite(library,
                 R"(graph f(x: f32[2,3,4], w: f32[5,4], k: f32[2,6,4]) {
                      t = transpose(w) {permutation=[1,0]}  y = matmul(x, t)
                      s = transpose(k) {permutation=[0,2,1]}  z = matmul(x, s)  return y, z
                    })",
                 R"(graph f(x: f32[2,3,4], w: f32[5,4], k: f32[2,6,4]) {
                      y = matmul(x, w) {transpose_b=true}  z = matmul(x, k) {transpose_b=true}  return y, z
                    })",
                 kRounding);
}

TEST(Patterns, WeightGradientsOf16BitProductsKeepTheirSums) {
  expect_rewrite(library,
                 R"(graph f(a: bf16[8,4], d: bf16[8,2], grad.w: f32[4,2] @grad) {
                      dw = matmul(a, d) {transpose_a=true}  c = cast(dw) {dtype=f32}  n = add(grad.w, c)
                      return grad.w <- n
                    })",
                 R"(graph f(a: bf16[8,4], d: bf16[8,2], grad.w: f32[4,2] @grad) {
                      n = matmul(a, d, grad.w) {transpose_a=true, dtype="f32"}  return grad.w <- n
                    })",
                 2e-2);
}

TEST(Patterns, AResidualIsAddedByTheNormThatFollows) {
  expect_rewrite(norms,
                 R"(graph f(x: f32[4,8], u: f32[8,8], g: f32[8] @param, b: f32[8] @param) {
                      r = matmul(x, u)  h = add(x, r)  e = exp(h)  y, mean, rstd = layer_norm(h, g, b)
                      z, r2 = rms_norm(h, g)  return e, y, z
                    })",
                 R"(graph f(x: f32[4,8], u: f32[8,8], g: f32[8] @param, b: f32[8] @param) {
                      r = matmul(x, u)  h, y, mean, rstd = add_layer_norm(x, r, g, b)  e = exp(h)
                      z, r2 = rms_norm(h, g)  return e, y, z
                    })");
}

TEST(Patterns, AResidualWithPointwiseWorkIsLeftToFusion) {
  const char* text = R"(graph f(x: f32[4,8], u: f32[4,8], g: f32[8] @param) {
    r = mul(u, u)  h = add(x, r)  y, rstd = rms_norm(h, g)  return h, y
  })";
  expect_rewrite(norms, text, text);
}

TEST(Patterns, TheGradientOfANormJoinsThatOfTheResidual) {
  expect_rewrite(norms,
                 R"(graph f(x: f32[4,8], d: f32[4,8], dy: f32[4,8], g: f32[8] @param, rstd: f32[4]) {
                      e = exp(d)  dx, dg = rms_norm_grad(dy, x, g, rstd)  s = add(e, dx)  return s, dg
                    })",
                 R"(graph f(x: f32[4,8], d: f32[4,8], dy: f32[4,8], g: f32[8] @param, rstd: f32[4]) {
                      e = exp(d)  s, dg = rms_norm_grad(dy, x, g, rstd, e)  return s, dg
                    })",
                 kRounding);
}

TEST(ImportPatterns, CausalAttentionFromItsParts) {
  expect_rewrite(imported,
                 R"(graph f(q: f32[2,5,3,4], k: f32[2,5,3,4], v: f32[2,5,3,4]) {
                      qt = transpose(q) {permutation=[0,2,1,3]}  kt = transpose(k) {permutation=[0,2,3,1]}
                      vt = transpose(v) {permutation=[0,2,1,3]}
                      s = matmul(qt, kt)
                      factor = constant() {value=0.5}  factors = broadcast(factor) {shape=[2,3,5,5]}  c = mul(s, factors)
                      i = iota() {shape=[5,5], axis=0}  j = iota() {shape=[5,5], axis=1}
                      visible = compare(i, j) {op="ge"}  all = broadcast(visible) {shape=[2,3,5,5]}
                      low = constant() {value=-inf, shape=[2,3,5,5]}
                      m = where(all, c, low)  p = softmax(m)  o = matmul(p, vt)
                      y = transpose(o) {permutation=[0,2,1,3]}  return y
                    })",
                 R"(graph f(q: f32[2,5,3,4], k: f32[2,5,3,4], v: f32[2,5,3,4]) {
                      attention, attention.1 = attention(q, k, v) {causal=true, scale=0.5}  return attention
                    })",
                 kRounding);
}

TEST(ImportPatterns, AttentionWithAMaskOfKeysAndAScaledQuery) {
  expect_rewrite(imported,
                 R"(graph f(q: f32[2,3,5,4], k: f32[2,3,6,4], v: f32[2,3,6,4], mask: bool[2,6]) {
                      eight = constant() {value=8.0, shape=[2,3,5,4]}  qs = div(q, eight)
                      s = matmul(qs, k) {transpose_b=true}
                      wide = reshape(mask) {shape=[2,1,1,6]}  all = broadcast(wide) {shape=[2,3,5,6]}
                      low = constant() {value=-1e9, shape=[2,3,5,6]}
                      m = where(all, s, low)  p = softmax(m) {axis=3}  o = matmul(p, v)  return o
                    })",
                 R"(graph f(q: f32[2,3,5,4], k: f32[2,3,6,4], v: f32[2,3,6,4], mask: bool[2,6]) {
                      transpose = transpose(q) {permutation=[0,2,1,3]}
                      transpose_1 = transpose(k) {permutation=[0,2,1,3]}
                      transpose_2 = transpose(v) {permutation=[0,2,1,3]}
                      attention, attention.1 = attention(transpose, transpose_1, transpose_2, mask) {scale=0.125, mask="keys"}
                      o = transpose(attention) {permutation=[0,2,1,3]}
                      return o
                    })",
                 kRounding);
}

TEST(ImportPatterns, RepeatedKeyHeadsAreTakenUnrepeated) {
  expect_rewrite(imported,
                 R"(graph f(q: f32[2,5,4,4], k: f32[2,5,2,4], v: f32[2,5,2,4]) {
                      qt = transpose(q) {permutation=[0,2,1,3]}  kt = transpose(k) {permutation=[0,2,1,3]}
                      vt = transpose(v) {permutation=[0,2,1,3]}
                      k1 = reshape(kt) {shape=[2,2,1,5,4]}  k2 = broadcast(k1) {shape=[2,2,2,5,4]}
                      k3 = reshape(k2) {shape=[2,4,5,4]}
                      v1 = reshape(vt) {shape=[2,2,1,5,4]}  v2 = broadcast(v1) {shape=[2,2,2,5,4]}
                      v3 = reshape(v2) {shape=[2,4,5,4]}
                      s = matmul(qt, k3) {transpose_b=true}  p = softmax(s)  o = matmul(p, v3)
                      y = transpose(o) {permutation=[0,2,1,3]}  return y
                    })",
                 R"(graph f(q: f32[2,5,4,4], k: f32[2,5,2,4], v: f32[2,5,2,4]) {
                      attention, attention.1 = attention(q, k, v) {scale=1.0}  return attention
                    })",
                 kRounding);
}

TEST(ImportPatterns, WeightsThatSomebodyElseReadsKeepThePartsApart) {
  const char* text = R"(graph f(q: f32[2,3,5,4], v: f32[2,3,5,4]) {
    s = matmul(q, v) {transpose_b=true}  p = softmax(s)  o = matmul(p, v)  return o, p
  })";
  expect_rewrite(imported, text, text);
}

TEST(Patterns, ReluGoesIntoTheBatchNormBeforeIt) {
  const char* inputs = "graph f(x: f32[4,3], w: f32[3], b: f32[3], m: f32[3] @statistic) {\n";
  const std::string body = "  y, mean, rstd, var = batch_norm(x, w, b)";
  expect_rewrite(
      imported, inputs + body + "  z = relu(y)  return z, m <- mean }",
      inputs + std::string("  z, mean, rstd, var = batch_norm(x, w, b) {relu=true}  return z, m <- mean }"));
  const std::string shared = inputs + body + "  z = relu(y)  return z, y, m <- mean }";
  expect_rewrite(imported, shared, shared);
}

}  // namespace
}  // namespace lockstep::testing
