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

}  // namespace
}  // namespace lockstep
