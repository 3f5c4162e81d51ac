// Wrong optimizer nodes are refused with the operand, the attribute and the fix.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

std::string error_of(const std::string& node) {
  const std::string text =
      "graph t(p: f32[100], g: f32[100], m: f32[100], v: f32[100], w: f32[10,10], r: f32[4],"
      " h: bf16[100], n: bf16[100], rounding: i64[2], z: f32[0], scale: f32[], lr: f32[], step: i64[]) {\n  "
      "q = " +
      node + "\n  return p\n}";
  try {
    parse_graph(text, all_ops());
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

#define EXPECT_REFUSED(node, part) EXPECT_NE(error_of(node).find(part), std::string::npos) << error_of(node)

TEST(Optimizers, BuffersAreFlatAndOfOneLength) {
  EXPECT_REFUSED("adamw(w, w, w, w, scale, lr, step)", "operand 0 must be a flat f32 buffer");
  EXPECT_REFUSED("lion(p, g, r, scale, lr, step)", "r: f32[4]");
  EXPECT_REFUSED("adam(p, g, m, v, lr, step, scale)",
                 "the last operands must be scale f32[], lr f32[] and step i64[]");
}

TEST(Optimizers, RangesRise) {
  EXPECT_REFUSED("adam(p, g, m, v, scale, lr, step) {no_decay=[3]}", "no_decay lists pairs");
  EXPECT_REFUSED("adam(p, g, m, v, scale, lr, step) {no_decay=[3,101]}", "101 does not");
}

TEST(Optimizers, SgdWantsABufferExactlyWithMomentum) {
  EXPECT_REFUSED("sgd(p, g, scale, lr, step) {momentum=0.9}", "sgd(p, g, buf, scale, lr, step)");
  EXPECT_REFUSED("sgd(p, g, m, scale, lr, step)", "momentum is 0; drop one of them");
  EXPECT_REFUSED("sgd(p, g, scale, lr, step) {nesterov=true}", "nesterov needs momentum");
}

TEST(Optimizers, Bf16WantsARoundingAndDraws) {
  EXPECT_REFUSED("adamw(h, h, m, v, scale, lr, step)", "operand 0 must be a flat f32 buffer");
  EXPECT_REFUSED("adamw(p, g, m, v, rounding, scale, lr, step) {draws=[0,1,0]}",
                 "operand 0 must be a flat bf16 buffer");
  EXPECT_REFUSED("adamw(h, g, m, v, rounding, scale, lr, step) {draws=[0,1,0]}", "g: f32[100]");
  EXPECT_REFUSED("adamw(h, h, m, n, rounding, scale, lr, step) {draws=[0,1,0]}", "one element type");
  EXPECT_REFUSED("adamw(h, h, m, r, rounding, scale, lr, step) {draws=[0,1,0]}", "as long as operand 0");
  EXPECT_REFUSED("adamw(h, h, m, v, rounding, scale, lr, step)", "whose draws the elements take");
  EXPECT_REFUSED("sgd(h, h, rounding, scale, lr, step) {draws=[0,1]}", "triples");
  EXPECT_REFUSED("lion(h, h, n, rounding, scale, lr, step) {draws=[4,1,0]}", "must begin at 0");
  EXPECT_REFUSED("lion(h, h, n, rounding, scale, lr, step) {draws=[0,1,0,104,2,0]}", "104 does not");
  EXPECT_REFUSED("lion(h, h, n, rounding, scale, lr, step) {draws=[0,1,0,50,2,0]}", "multiples of 4");
  EXPECT_REFUSED("adam(p, g, m, v, scale, lr, step) {draws=[0,1,0]}", "no rounding i64[2] before scale");
  EXPECT_REFUSED("adam(p, g, m, v, r, scale, lr, step)", "operand 4 must be rounding i64[2]");
  EXPECT_REFUSED("sgd(p, g, m, v, scale, lr, step) {momentum=0.9}", "operand 3 must be rounding i64[2]");
}

TEST(Optimizers, LambWantsItsTensors) {
  EXPECT_REFUSED("lamb(p, g, m, v, scale, lr, step)", "segments");
  EXPECT_REFUSED("lamb(p, g, m, v, scale, lr, step) {segments=[0,50], no_decay=[10,20]}",
                 "no_decay has an edge at 10, inside the tensor [0, 50)");
}

TEST(Optimizers, AdafactorStateMatchesTheListedTensors) {
  EXPECT_REFUSED("adafactor(p, g, r, r, z, scale, lr, step) {matrices=[0,4]}", "triples");
  EXPECT_REFUSED("adafactor(p, g, r, r, z, scale, lr, step) {matrices=[90,4,4]}",
                 "does not lie within the buffer");
  EXPECT_REFUSED("adafactor(p, g, r, r, z, scale, lr, step) {matrices=[0,5,4]}", "rows must be f32[5]");
  EXPECT_REFUSED("adafactor(p, g, r, r, z, scale, lr, step) {matrices=[0,4,4], vectors=[20,30]}",
                 "whole must be f32[10]");
}

}  // namespace
}  // namespace lockstep
