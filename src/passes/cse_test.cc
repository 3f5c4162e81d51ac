#include "passes/cse.h"

#include "passes/rewrite_case.h"

namespace lockstep::testing {
namespace {

TEST(Cse, MergesEqualNodesAndWhatFollowsThem) {
  expect_rewrite(
      merge_common_subexpressions,
      R"(graph f(x: f32[4]) { a = exp(x)  b = exp(x)  c = neg(a)  d = neg(b)  e = mul(c, d)  return e })",
      R"(graph f(x: f32[4]) { a = exp(x)  c = neg(a)  e = mul(c, c)  return e })");
}

TEST(Cse, SeesThroughSwappedOperandsWhereTheBitsAgree) {
  expect_rewrite(
      merge_common_subexpressions,
      R"(graph f(x: f32[4], y: f32[4]) { a = add(x, y)  b = add(y, x)  c = sub(x, y)  d = sub(y, x)  return a, b, c, d })",
      R"(graph f(x: f32[4], y: f32[4]) { a = add(x, y)  c = sub(x, y)  d = sub(y, x)  return a, a, c, d })");
}

TEST(Cse, AttributesTellNodesApart) {
  const char* text = R"(graph f(x: f32[2,2]) {
    a = matmul(x, x) {transpose_a=true}  b = matmul(x, x)  c = sum(x) {axes=[0]}  d = sum(x) {axes=[1]}
    return a, b, c, d
  })";
  expect_rewrite(merge_common_subexpressions, text, text);
}

TEST(Cse, ZeroAndMinusZeroAreDifferentConstants) {
  const char* text = R"(graph f() { a = constant() {value=0.0}  b = constant() {value=-0.0}  return a, b })";
  expect_rewrite(merge_common_subexpressions, text, text);
}

TEST(Cse, LeavesRecomputedValuesAlone) {
  const char* text = R"(graph f(x: f32[4]) { a = exp(x)  again.a = exp(x)  b = mul(a, again.a)  return b })";
  expect_rewrite(merge_common_subexpressions, text, text);
}

}  // namespace
}  // namespace lockstep::testing
