#include "comm/leaf_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace lockstep {
namespace {

// The tree as text, and the most slots that were in use.
std::string tree_of(int64_t leaves, int64_t* most) {
  LeafStack stack(leaves);
  std::vector<std::string> slots(16);
  *most = 0;
  const auto merge = [&](int64_t into, int64_t from) {
    slots[static_cast<size_t>(into)] =
        "(" + slots[static_cast<size_t>(into)] + "+" + slots[static_cast<size_t>(from)] + ")";
  };
  for (int64_t leaf = 0; leaf < leaves; ++leaf) {
    *most = std::max(*most, stack.next_slot() + 1);
    slots[static_cast<size_t>(stack.next_slot())] = std::to_string(leaf);
    stack.push({leaf, leaf + 1}, merge);
  }
  return slots[0];
}

TEST(LeafStack, IsTheBinaryTreeOverIndices) {
  int64_t most = 0;
  EXPECT_EQ(tree_of(1, &most), "0");
  EXPECT_EQ(tree_of(2, &most), "(0+1)");
  EXPECT_EQ(tree_of(4, &most), "((0+1)+(2+3))");
  EXPECT_EQ(tree_of(6, &most), "(((0+1)+(2+3))+(4+5))");
  EXPECT_EQ(tree_of(7, &most), "(((0+1)+(2+3))+((4+5)+6))");
}

TEST(LeafStack, KeepsFewPartialSums) {
  for (int64_t leaves = 1; leaves <= 64; ++leaves) {
    int64_t most = 0;
    tree_of(leaves, &most);
    EXPECT_EQ(most, stack_depth({0, leaves}, leaves)) << leaves;
    EXPECT_LE(most, std::bit_width(static_cast<uint64_t>(leaves))) << leaves;
  }
}

}  // namespace
}  // namespace lockstep
