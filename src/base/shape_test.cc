#include "base/shape.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(Shape, CountsAndStrides) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.numel(), 24);
  EXPECT_EQ(shape.strides()[0], 12);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(to_string(shape), "[2,3,4]");
  EXPECT_EQ(Shape{}.numel(), 1);
  EXPECT_EQ((Shape{3, 0}).numel(), 0);
}

TEST(Shape, RefusesNegativeAndOverflowingExtents) {
  EXPECT_THROW((Shape{2, -1}), UserError);
  EXPECT_THROW((Shape{int64_t{1} << 40, int64_t{1} << 40}), UserError);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), UserError);
}

TEST(Shape, BroadcastsByTheLastAxes) {
  Shape common;
  EXPECT_TRUE(broadcast_shapes({4, 1, 3}, {2, 1}, &common));
  EXPECT_EQ(common, (Shape{4, 2, 3}));
  EXPECT_FALSE(broadcast_shapes({2, 3}, {2, 4}, &common));
}

}  // namespace
}  // namespace lockstep
