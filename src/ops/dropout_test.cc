// What dropout refuses.
#include "ops/op_errors.h"

namespace lockstep {
namespace {

using testing::expect_error;

TEST(Dropout, RefusesProbabilitiesOutsideZeroToOne) {
  expect_error("x: f32[8], r: i64[2]", "y = dropout(x, r) {p=1.0, key=0}", "at least 0 and below 1");
  expect_error("x: f32[8], r: i32[2]", "y = dropout(x, r) {p=0.5, key=0}", "must be i64[2]");
}

}  // namespace
}  // namespace lockstep
