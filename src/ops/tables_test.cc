// What embedding, gather and their kin refuse.
#include "ops/op_errors.h"

namespace lockstep {
namespace {

using testing::expect_error;

TEST(Tables, RefuseWhatIsNoTable) {
  expect_error("t: f32[8,2], i: f32[3]", "y = embedding(t, i)", "must be i32 or i64");
  expect_error("t: f32[8,2,2], i: i32[3]", "y = embedding(t, i)", "the table must be [V,C]");
  expect_error("d: f32[4,2], i: i32[3]", "y = embedding_grad(d, i) {rows=9}",
               "the shape of ids and one more axis");
  expect_error("b: f32[4,2], i: i32[3], u: f32[3,3]", "y = scatter_add(b, i, u)",
               "updates (operand 2) must be f32[3,2]");
  expect_error("t: f32[8,2], i: i32[3,2]", "y = embedding_bag(t, i) {mode=\"max\"}", "write sum or mean");
  expect_error("t: f32[8,2], i: i32[3]", "y = embedding(t, i) {padding=8}", "an id of the 8 rows");
  expect_error("t: f32[8,2], i: i32[3]", "y = embedding(t, i) {first=9, whole=16}",
               "the 8 rows from 9 on are no part of 16");
  expect_error("t: f32[8,2], i: i32[3]", "y = embedding(t, i) {first=8}", "are no part of 0");
  expect_error("d: f32[3,2], i: i32[3]", "y = embedding_grad(d, i) {rows=8, first=9, whole=16}",
               "the 8 rows from 9 on are no part of 16");
}

}  // namespace
}  // namespace lockstep
