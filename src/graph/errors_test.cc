// What bad text answers: always a UserError that says where and what, never a crash or an internal error.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text.h"
#include "graph/toy_ops.h"

namespace lockstep::testing {
namespace {

struct BadText {
  const char* text;
  const char* says;  // part of the message
};

const BadText kBadTexts[] = {
    // Not a graph.
    {"", "g:1:1: expected 'graph', found the end of the text"},
    {"grph g() { return }", "a graph begins with the word 'graph'"},
    {"graph 7() { return }", "expected the name of the graph"},
    {"graph g( { return }", "expected the name of an input"},
    {"graph g() { return", "expected"},
    {"graph g() { return } x", "text after the end"},
    {"graph g() { }", "expected a statement or 'return'"},
    {"graph g(x: f32[2]) { a = tuned(x) {label=\"open\n\"}  return a }", "not closed on its line"},
    // Inputs.
    {"graph g(x: f64[2]) { return x }", "unknown element type f64"},
    {"graph g(x: f32[2] @weight) { return x }",
     "unknown role weight; use input, param, frozen, grad, state or statistic"},
    {"graph g(x: f32[2] @statistic) { return x }",
     "x is a statistic: it must be f32 and written by the graph"},
    {"graph g(x: i32[2] @statistic) { return x <- x }", "x is a statistic: it must be f32"},
    {"graph g(x: f32[2], x: f32[2]) { return x }", "two inputs are named x"},
    {"graph g(x: f32[-1]) { return x }", "cannot be negative"},
    {"graph g(x: f32[2.5]) { return x }", "'2.5' is not a 64-bit integer"},
    {"graph g(x: f32[99999999999999999999]) { return x }", "is not a 64-bit integer"},
    {"graph g(x: f32[1,1,1,1,1,1,1,1,1]) { return x }", "at most 8 axes"},
    // Sizes that would overflow, also behind an extent of zero.
    {"graph g(x: f32[4294967296,4294967296]) { return x }", "more than 2^46 elements"},
    {"graph g(x: f32[9223372036854775807,2]) { return x }", "more than 2^46 elements"},
    {"graph g(x: f32[0,4294967296,4294967296]) { return x }", "more than 2^46 elements"},
    {"graph g() { a = filled() {shape=[4294967296,4294967296]}  return a }", "2^46"},
    {"graph g() { a = filled() {shape=[-5]}  return a }", "cannot be negative"},
    // Values.
    {"graph g(x: f32[2]) {\n  a = tuned(b)\n  b = tuned(a)\n  return b\n}",
     "g:2:13: b is used before it is defined"},
    {"graph g(x: f32[2]) { a = tuned(a)  return a }",
     "a is used before it is defined; a graph has no cycles"},
    {"graph g(x: f32[2]) { a = tuned(x)  a = tuned(x)  return a }", "a is assigned twice"},
    {"graph g(x: f32[2]) { x = tuned(x)  return x }", "x is assigned twice"},
    {"graph g(x: f32[2]) { a, a = twice(x)  return a }", "two values are named a"},
    {"graph g(x: f32[2]) { a = twice(x)  return a }", "twice has 2 results, 1 are named"},
    {"graph g(x: f32[2]) { a, b, c = twice(x)  return a }", "twice has 2 results, 3 are named"},
    {"graph g(x: f32[2]) { return y }", "y is used before it is defined"},
    {"graph g(x: f32[2]) { a = tuned(x)  return a <- x }",
     "a is not an input of the graph and cannot be written"},
    {"graph g(x: f32[2], y: f32[3]) { return x <- y }", "x is f32[2]"},
    {"graph g(x: f32[2], y: f32[2]) { return x <- y, x <- y }", "x is written twice"},
    // Ops.
    {"graph g(x: f32[2]) { a = tunde(x)  return a }", "unknown op tunde"},
    {"graph g(x: f32[2]) { a = tuned()  return a }", "takes 1 operands, got 0"},
    {"graph g(x: f32[2]) { a = tuned(x, x)  return a }",
     "tuned(x: f32[2], x: f32[2]): takes 1 operands, got 2"},
    {"graph g() { a = join()  return a }", "takes at least 1 operands"},
    {"graph g(x: f32[2], y: f32[3]) { a = join(x, y)  return a }",
     "join(x: f32[2], y: f32[3]): operand 1 is f32[3]"},
    // Attributes.
    {"graph g(x: f32[2]) { a = tuned(x) {speed=1}  return a }",
     "unknown attribute speed; tuned has: flag, count"},
    {"graph g(x: f32[2]) { a = tuned(x) {count=1, count=2}  return a }", "attribute count is given twice"},
    {"graph g(x: f32[2]) { a = tuned(x) {count=1.5}  return a }", "a number; it must be a int"},
    {"graph g(x: f32[2]) { a = tuned(x) {count=\"1\"}  return a }", "a text; it must be a int"},
    {"graph g(x: f32[2]) { a = tuned(x) {flag=yes}  return a }", "'yes' is not a value"},
    {"graph g(x: f32[2]) { a = tuned(x) {axes=[1,x]}  return a }", "'x' is not a number"},
    {"graph g(x: f32[2]) { a = tuned(x) {rate=1e999}  return a }", "'1e999' is not a number"},
    {"graph g(x: f32[2]) { a = tuned(x) {rate=1.2.3}  return a }", "'1.2.3' is not a number"},
    {"graph g(x: f32[2]) { a = tuned(x) {count=9223372036854775807}  return a }",
     "must lie within -2^46 and 2^46"},
    {"graph g(x: f32[2]) { a = tuned(x) {axes=[1,-9223372036854775808]}  return a }",
     "must lie within -2^46 and 2^46"},
    {"graph g() { a = filled()  return a }", "attribute shape is required"},
};

TEST(GraphErrors, BadTextIsExplained) {
  for (const BadText& bad : kBadTexts) {
    try {
      parse_graph(bad.text, toy_ops(), "g");
      ADD_FAILURE() << "was accepted: " << bad.text;
    } catch (const UserError& error) {
      const std::string what = error.what();
      EXPECT_TRUE(what.starts_with("g:")) << "no place: " << what;
      EXPECT_NE(what.find(bad.says), std::string::npos) << bad.text << "\n says: " << what;
    }
  }
}

TEST(GraphErrors, EveryPrefixOfAGraphIsRefused) {
  const std::string text =
      "graph g(x: f32[2,3] @param) { a, b = twice(x)  c = tuned(b) {rate=-0.5, label=\"q\", axes=[1,2]}  "
      "return c, x <- a }";
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_THROW(parse_graph(text.substr(0, length), toy_ops()), UserError) << text.substr(0, length);
}

}  // namespace
}  // namespace lockstep::testing
