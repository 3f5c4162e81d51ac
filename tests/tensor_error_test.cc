#include "tensor_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lockstep::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Values = std::vector<double>;

bool close(const Values& got, const Values& want, double tolerance) {
  return compare(got, want, tolerance).empty();
}

TEST(TensorError, AWrongNanFailsWhateverComesAfterIt) {
  const Values want{1, 2, 3, 4};
  for (size_t i = 0; i < want.size(); ++i) {
    Values got{1.001, 2, 3.001, 4.001};
    got[i] = kNan;
    EXPECT_FALSE(close(got, want, 1e9)) << i;
    EXPECT_EQ(tensor_error(got, want).where, static_cast<int64_t>(i));
    EXPECT_FALSE(close(want, got, 1e9)) << "a number where the reference has a NaN, " << i;
  }
}

TEST(TensorError, NansAndInfinitiesOfBothAreEqual) {
  EXPECT_TRUE(close({kNan, kInfinity, -kInfinity, 2}, {kNan, kInfinity, -kInfinity, 2}, 0));
  EXPECT_FALSE(close({kInfinity, 1}, {-kInfinity, 1}, 1e9));
  EXPECT_FALSE(close({kInfinity, 1}, {5, 1}, 1e9));
  EXPECT_FALSE(close({5, 1}, {kInfinity, 1}, 1e9));
}

TEST(TensorError, IsRelativeToTheReferencesOwnSize) {
  EXPECT_DOUBLE_EQ(tensor_error(Values{1e-6, 2.5e-6}, Values{1e-6, 2e-6}).relative, 0.25);
  EXPECT_FALSE(close({1e-6, 2.1e-6}, {1e-6, 2e-6}, 1e-2));
  EXPECT_TRUE(close({1e6, 2.1e6}, {1e6, 2e6}, 0.1));
  // Not to that of the element: sums that cancel leave noise of the size of the others.
  EXPECT_TRUE(close({1e-9, 1}, {0, 1}, 1e-8));
}

TEST(TensorError, WhereTheReferenceIsZeroSoMustBeTheRest) {
  EXPECT_TRUE(close({0, -0.0}, {0, 0}, 0));
  EXPECT_FALSE(close({0, 1e-30}, {0, 0}, 0.1));
  EXPECT_FALSE(close({0, kNan}, {0, 0}, 0.1));
}

TEST(TensorError, SumsThatCancelAreComparedWithTheirTerms) {
  EXPECT_EQ(compare(Values{1e-8}, Values{0}, 1e-5, 1), "");
  EXPECT_NE(compare(Values{1e-4}, Values{0}, 1e-5, 1), "");
  EXPECT_NE(compare(Values{kNan}, Values{0}, 1e-5, 1), "");
}

TEST(TensorError, NamesTheWorstElement) {
  EXPECT_EQ(compare(Values{1, 3, 2.5}, Values{1, 2, 2}, 0.1),
            "element 1 is 3, the reference says 2 (error 0.5 relative to 2, allowed 0.1)");
  EXPECT_EQ(compare(Values{1}, Values{1, 2}, 1), "1 elements, the reference has 2");
}

}  // namespace
}  // namespace lockstep::testing
