// What losses and norms refuse, and whether the words name the op, the operands and the fix.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

std::string refusal(const std::string& inputs, const std::string& statement) {
  try {
    parse_graph("graph t(" + inputs + ") {\n  " + statement + "\n  return y\n}\n", all_ops(), "test");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

void expect_in(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

TEST(Norms, ParametersMustFitTheLastAxis) {
  expect_in(refusal("x: f32[4,8], w: f32[4], b: f32[8]", "y, m, r = layer_norm(x, w, b)"),
            {"layer_norm(x: f32[4,8], w: f32[4], b: f32[8])", "operand 1 must have shape [8]"});
  expect_in(refusal("x: bf16[4,8], w: f16[8]", "y, r = rms_norm(x, w)"), {"must be f32 or bf16", "cast"});
  expect_in(refusal("x: f32[4,8], r: f32[4,9], w: f32[8]", "s, y, q = add_rms_norm(x, r, w)"),
            {"operand 1 is f32[4,9]"});
}

TEST(Norms, BatchNormNeedsTwoValuesPerChannel) {
  const std::string inputs = "x: f32[1,8], w: f32[8], b: f32[8], m: f32[8], v: f32[8]";
  expect_in(refusal(inputs, "y, a, r, s = batch_norm(x, w, b)"), {"at least 2 values", "larger microbatch"});
  EXPECT_EQ(refusal(inputs, "y, a, r = batch_norm(x, w, b, m, v) {training=false}"), "accepted");
}

TEST(Norms, BatchNormTakesRunningStatisticsOnlyToEvaluate) {
  const std::string inputs = "x: f32[4,8], w: f32[8], b: f32[8], m: f32[8], v: f32[8]";
  for (const char* wrong :
       {"y, a, r, s = batch_norm(x, w, b, m, v)", "y, a, r = batch_norm(x, w, b) {training=false}"})
    expect_in(refusal(inputs, wrong), {"training takes x, weight and bias", "running mean and variance"});
}

TEST(Norms, GroupsDivideChannels) {
  expect_in(refusal("x: f32[2,9,8], w: f32[8], b: f32[8]", "y, m, r = group_norm(x, w, b) {groups=3}"),
            {"groups is 3", "divide the 8 channels"});
}

TEST(Losses, LabelsAreOneIntegerPerRow) {
  expect_in(refusal("x: f32[2,3,7], t: i32[2,3]", "y, n, l = cross_entropy(x, t)"),
            {"[rows, classes]", "reshape"});
  expect_in(refusal("x: f32[6,7], t: i64[6]", "y, n, l = cross_entropy(x, t)"), {"i32[6]", "cast"});
  expect_in(refusal("x: f32[6,7], t: i32[6]", "y, n, l = cross_entropy(x, t) {smoothing=1.0}"), {"[0, 1)"});
  expect_in(refusal("x: f32[6,1], t: f32[6]", "y, n = bce_with_logits(x, t)"),
            {"labels must have the logits' shape [6,1]"});
}

TEST(Losses, LeavesHaveTheColumnsOfAllClasses) {
  const std::string operands = "a: f32[6,4], b: f32[6,4], t: i32[6]";
  expect_in(refusal(operands, "y, n, l = cross_entropy_leaves(a, b, t) {leaves=2, classes=12}"),
            {"2 leaves of 4 columns with each of 1 workers do not make 12 classes"});
  expect_in(refusal(operands, "y, n, l = cross_entropy_leaves(a, b, t) {leaves=2, first=4, classes=8}"),
            {"the 8 columns from 4 on are no part of 8 classes"});
  expect_in(refusal(operands, "y, n, l = cross_entropy_leaves(a, b, t) {leaves=4, classes=16}"),
            {"give the logits of 4 leaves, labels"});
  expect_in(refusal("a: f32[6,4], t: i64[6]", "y, n, l = cross_entropy_leaves(a, t) {leaves=1, classes=4}"),
            {"labels must be i32[6]"});
  expect_in(
      refusal("p: f32[2,3,6], t: i32[6]", "y, n, l = cross_entropy_join(p, t) {classes=4, smoothing=0.1}"),
      {"f32[leaves,4,rows]"});
}

TEST(Losses, SoftmaxNamesTheLegalAxes) {
  expect_in(refusal("x: f32[6,7]", "y = softmax(x) {axis=2}"), {"axis 2 is outside [-2, 2)"});
}

}  // namespace
}  // namespace lockstep
