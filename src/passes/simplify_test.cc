#include "passes/simplify.h"

#include "passes/rewrite_case.h"

namespace lockstep::testing {
namespace {

void expect_simplified(std::string_view before, std::string_view after) {
  expect_rewrite([](const Graph& graph) { return simplify(graph); }, before, after);
}
void expect_unchanged(std::string_view text) { expect_simplified(text, text); }

TEST(Simplify, FoldsArithmeticOnConstants) {
  expect_simplified(
      R"(graph f(x: f32[3]) {
                         a = constant() {value=0.1}  b = constant() {value=3.0}  c = mul(a, b)  d = add(c, b)
                         e = broadcast(d) {shape=[3]}  y = mul(x, e)  return y
                       })",
      // 0.1 and the product are rounded to fp32, as a kernel would.
      R"(graph f(x: f32[3]) { e = constant() {value=3.299999952316284, shape=[3]}  y = mul(x, e)  return y })");
}

TEST(Simplify, LeavesFunctionsThatKernelsApproximate) {
  expect_unchanged(
      R"(graph f(x: f32[]) { a = constant() {value=0.1}  b = exp(a)  y = mul(x, b)  return y })");
}

TEST(Simplify, MultiplyingAndDividingByOne) {
  expect_simplified(R"(graph f(x: f32[3]) {
                         one = constant() {value=1.0, shape=[3]}  a = mul(x, one)  b = mul(one, a)  c = div(b, one)
                         y = neg(c)  return y
                       })",
                    R"(graph f(x: f32[3]) { y = neg(x)  return y })");
}

TEST(Simplify, DividingByAPowerOfTwoIsMultiplying) {
  expect_simplified(
      R"(graph f(x: f32[3]) { c = constant() {value=8.0, shape=[3]}  y = div(x, c)  return y })",
      R"(graph f(x: f32[3]) { constant = constant() {value=0.125, shape=[3]}  y = mul(x, constant)  return y })");
  expect_unchanged(
      R"(graph f(x: f32[3]) { c = constant() {value=3.0, shape=[3]}  y = div(x, c)  return y })");
}

TEST(Simplify, AddingZeroGoesOnlyWhereTheSignOfZeroIsSafe) {
  expect_unchanged(
      R"(graph f(x: f32[3]) { c = constant() {value=0.0, shape=[3]}  y = add(x, c)  return y })");
  expect_simplified(
      R"(graph f(x: f32[3]) { c = constant() {value=-0.0, shape=[3]}  y = add(x, c)  return y })",
      R"(graph f(x: f32[3]) { return x })");
  expect_simplified(
      R"(graph f(x: f32[3]) { c = constant() {value=0.0, shape=[3]}  e = exp(x)  y = add(c, e)  return y })",
      R"(graph f(x: f32[3]) { e = exp(x)  return e })");
  expect_simplified(
      R"(graph f(x: f32[3]) { c = constant() {value=0.0, shape=[3]}  y = sub(x, c)  return y })",
      R"(graph f(x: f32[3]) { return x })");
}

TEST(Simplify, ProductsOfSeveralConstantsKeepTheirRounding) {
  expect_unchanged(R"(graph f(x: f32[3]) {
                        a = constant() {value=0.1, shape=[3]}  b = mul(x, a)  c = constant() {value=0.3, shape=[3]}
                        y = mul(b, c)  return y
                      })");
}

TEST(Simplify, Negations) {
  expect_simplified(R"(graph f(x: f32[3], z: f32[3]) {
                         a = neg(x)  b = neg(a)  c = neg(z)  d = add(b, c)  e = sub(d, c)  return e
                       })",
                    R"(graph f(x: f32[3], z: f32[3]) { d = sub(x, z)  e = add(d, z)  return e })");
}

TEST(Simplify, ChainsOfReshapesAndBroadcasts) {
  expect_simplified(R"(graph f(x: f32[4,3], b: f32[3]) {
                         p = reshape(x) {shape=[12]}  q = reshape(p) {shape=[2,6]}  r = reshape(q) {shape=[4,3]}
                         s = reshape(b) {shape=[1,3]}  t = broadcast(s) {shape=[4,3]}  u = broadcast(t) {shape=[2,4,3]}
                         y = add(r, t)  return y, u
                       })",
                    R"(graph f(x: f32[4,3], b: f32[3]) {
                         t = broadcast(b) {shape=[4,3]}  u = broadcast(b) {shape=[2,4,3]}  y = add(x, t)  return y, u
                       })");
}

TEST(Simplify, ABroadcastThatRepeatsNothingIsAView) {
  expect_simplified(R"(graph f(b: f32[3]) { y = broadcast(b) {shape=[1,1,3]}  return y })",
                    R"(graph f(b: f32[3]) { y = reshape(b) {shape=[1,1,3]}  return y })");
}

TEST(Simplify, SumsOverSingleElements) {
  expect_simplified(
      R"(graph f(x: f32[4,1,3]) { y = sum(x) {axes=[1]}  z = mean(x) {axes=[1], keep=true}  return y, z })",
      R"(graph f(x: f32[4,1,3]) { y = reshape(x) {shape=[4,3]}  return y, x })");
}

TEST(Simplify, CastsThatLoseNothing) {
  expect_simplified(R"(graph f(x: bf16[3]) { a = cast(x) {dtype=f32}  y = cast(a) {dtype=bf16}  return y })",
                    R"(graph f(x: bf16[3]) { return x })");
  expect_unchanged(R"(graph f(x: f32[3]) { a = cast(x) {dtype=bf16}  y = cast(a) {dtype=f32}  return y })");
}

TEST(Simplify, ChainsOfTransposes) {
  expect_simplified(R"(graph f(x: f32[2,3,4]) {
                         a = transpose(x) {permutation=[1,2,0]}  b = transpose(a) {permutation=[2,0,1]}
                         c = transpose(a) {permutation=[1,0,2]}  return b, c
                       })",
                    R"(graph f(x: f32[2,3,4]) { c = transpose(x) {permutation=[2,1,0]}  return x, c })");
}

TEST(Simplify, ATransposeThatMovesNoElementIsAView) {
  expect_simplified(R"(graph f(x: f32[2,1,4]) { y = transpose(x) {permutation=[1,0,2]}  return y })",
                    R"(graph f(x: f32[2,1,4]) { y = reshape(x) {shape=[1,2,4]}  return y })");
}

TEST(Simplify, SlicesAndConcatenations) {
  expect_simplified(R"(graph f(x: f32[9,4]) {
                         a = slice(x) {axis=0, begin=0, end=9}  b = slice(a) {axis=0, begin=2, end=8}
                         c = slice(b) {axis=-2, begin=1, end=3}  d = concat(c) {axis=0}  return d
                       })",
                    R"(graph f(x: f32[9,4]) { c = slice(x) {axis=-2, begin=3, end=5}  return c })");
}

TEST(Simplify, ConstantsOfAnyShape) {
  expect_simplified(R"(graph f(x: bf16[3,2]) {
                         c = constant() {value=0.1, shape=[2,3]}  t = transpose(c) {permutation=[1,0]}
                         b = cast(t) {dtype=bf16}  y = add(x, b)  return y
                       })",
                    // 0.1 as bf16 holds it.
                    R"(graph f(x: bf16[3,2]) {
                         b = constant() {value=0.10009765625, shape=[3,2], dtype=bf16}  y = add(x, b)  return y
                       })");
}

TEST(Simplify, KnownConditions) {
  expect_simplified(R"(graph f(x: f32[3], z: f32[3]) {
                         c = constant() {value=0.0, shape=[3], dtype=bool}  y = where(c, x, z)  return y
                       })",
                    R"(graph f(x: f32[3], z: f32[3]) { return z })");
}

TEST(Simplify, CheckpointsStayOnlyForThePassThatReadsThem) {
  const char* marked = R"(graph f(x: f32[3]) { a = checkpoint(x)  y = exp(a)  return y })";
  expect_simplified(marked, R"(graph f(x: f32[3]) { y = exp(x)  return y })");
  expect_rewrite([](const Graph& graph) { return simplify(graph, {.keep_checkpoints = true}); }, marked,
                 marked);
}

}  // namespace
}  // namespace lockstep::testing
