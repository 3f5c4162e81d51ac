// Shape ops and reductions refuse what they cannot mean, with the op, its operands and the way out.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

std::string error_of(const std::string& inputs, const std::string& expression) {
  try {
    parse_graph("graph t(" + inputs + ") { y = " + expression + " return y }", all_ops());
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_REFUSED(inputs, expression, text) \
  EXPECT_NE(error_of(inputs, expression).find(text), std::string::npos) << error_of(inputs, expression)

TEST(ShapeOps, NameTheOpAndItsOperands) {
  EXPECT_REFUSED("a: f32[2,3]", "transpose(a) {permutation=[0,0]}", "transpose(a: f32[2,3])");
}

TEST(ShapeOps, TransposeWantsEachAxisOnce) {
  EXPECT_REFUSED("a: f32[2,3]", "transpose(a) {permutation=[0,0]}", "each of the axes 0 to 1 once");
  EXPECT_REFUSED("a: f32[2,3]", "transpose(a) {permutation=[1,0,2]}", "each of the axes 0 to 1 once");
  EXPECT_REFUSED("a: f32[2,3]", "transpose(a) {permutation=[]}", "must name all 2 axes");
}

TEST(ShapeOps, SliceStaysInside) {
  EXPECT_REFUSED("a: f32[2,3]", "slice(a) {axis=1, begin=1, end=4}", "[1, 4) is not a range of axis 1");
  EXPECT_REFUSED("a: f32[2,3]", "slice(a) {axis=1, begin=2, end=1}", "indices are [0, 3)");
  EXPECT_REFUSED("a: f32[2,3]", "slice(a) {axis=2, begin=0, end=1}", "axis 2 is outside [-2, 2)");
}

TEST(ShapeOps, ConcatJoinsAlongOneAxisOnly) {
  EXPECT_REFUSED("a: f32[2,3], b: f32[3,4]", "concat(a, b) {axis=0}", "they may differ along axis 0 only");
  EXPECT_REFUSED("a: f32[2,3], b: bf16[2,3]", "concat(a, b) {axis=0}", "cast one of them");
  EXPECT_REFUSED("a: f32[2,3], b: f32[6]", "concat(a, b) {axis=0}", "operand 1 is [6]");
}

TEST(ShapeOps, SplitUsesTheWholeAxis) {
  EXPECT_REFUSED("a: f32[2,5]", "split(a) {axis=1, sizes=[2,2]}", "add up to 4, axis 1 has 5");
  EXPECT_REFUSED("a: f32[2,5]", "split(a) {axis=1, sizes=[6,-1]}", "negative extent");
  EXPECT_REFUSED("a: f32[2,5]", "split(a) {axis=1, sizes=[]}", "give the extent of each piece");
}

TEST(ShapeOps, PadCountsAxesAndNeverTakesAway) {
  EXPECT_REFUSED("a: f32[2,5]", "pad(a) {low=[1], high=[0,0]}", "one for each of the 2 axes");
  EXPECT_REFUSED("a: f32[2,5]", "pad(a) {low=[1,0], high=[0,-1]}", "use slice");
}

TEST(Reductions, AxesExistOnceAndHoldSomething) {
  EXPECT_REFUSED("a: f32[2,5]", "sum(a) {axes=[0,-2]}", "one axis twice");
  EXPECT_REFUSED("a: f32[2,5]", "mean(a) {axes=[3]}", "axis 3 is outside");
  EXPECT_REFUSED("a: f32[2,0]", "max(a) {axes=[1]}", "axis 1 is empty");
  EXPECT_REFUSED("a: f32[2,0]", "argmax(a)", "axis 1 is empty");
  EXPECT_REFUSED("a: f32[2,3,4]", "max(a) {axes=[0,2]}", "axes 0 and 2 are not adjacent");
}

TEST(Reductions, MeanAndMaxAreOfFloatingNumbers) {
  EXPECT_REFUSED("a: i32[2,5]", "mean(a)", "cast it first");
  EXPECT_REFUSED("a: i32[2,5]", "max(a)", "cast it first");
}

}  // namespace
}  // namespace lockstep
