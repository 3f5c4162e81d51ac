#include "base/nearest.h"

#include <gtest/gtest.h>

#include <array>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 3> kKnown = {"matmul", "layer_norm", "gelu"};

TEST(Nearest, SuggestsWhatIsClose) {
  EXPECT_EQ(suggestion("matmull", kKnown), "did you mean matmul?");
  EXPECT_EQ(suggestion("layernorm", kKnown), "did you mean layer_norm?");
}

TEST(Nearest, ListsWhatIsKnownOtherwise) {
  EXPECT_EQ(suggestion("zzzzzz", kKnown), "known: matmul, layer_norm, gelu");
}

TEST(Nearest, DivisorsLieOnBothSidesUnlessOneIsMet) {
  EXPECT_EQ(nearest_divisors(1024, 96), (std::vector<int64_t>{64, 128}));
  EXPECT_EQ(nearest_divisors(97, 50), (std::vector<int64_t>{1, 97}));
  EXPECT_EQ(nearest_divisors(96, 32), (std::vector<int64_t>{32}));
  EXPECT_EQ(nearest_divisors(12, 20), (std::vector<int64_t>{12}));
}

}  // namespace
}  // namespace lockstep
