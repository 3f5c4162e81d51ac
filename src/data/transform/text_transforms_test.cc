// Text as tokens of equal number.
#include <gtest/gtest.h>

#include "data/transform/test_columns.h"

namespace lockstep {
namespace {

TEST(TokeniseTransform, MakesATokenOfEachByte) {
  const ColumnBlock block =
      transformed({"tokenise", {{"columns", {"x"}}, {"shift", {"1"}}, {"first", {"0"}}}},
                  {text_column("x", {"AB", std::nullopt, "\xc3\xbc"})});
  EXPECT_EQ(block.column("x").as<int32_t>(), (std::vector<int32_t>{0, 66, 67, 0, 0, 0xc4, 0xbd}));
  EXPECT_EQ(block.column("x").ends, (std::vector<int64_t>{3, 4, 7}));
}

TEST(PadTransform, CutsAndFillsUp) {
  ColumnBlock block = block_of({text_column("x", {"abcd", "a", ""})});
  make_transform({"tokenise", {{"columns", {"x"}}}})->apply({}, block);
  const auto pad = make_transform({"pad", {{"columns", {"x"}}, {"length", {"3"}}, {"with", {"7"}}}});
  const std::vector<BlockField> fields = pad->output(block.fields());
  pad->apply({}, block);
  check_block(block);
  EXPECT_EQ(block.fields(), fields);
  EXPECT_EQ(block.column("x").as<int32_t>(), (std::vector<int32_t>{97, 98, 99, 97, 7, 7, 7, 7, 7}));
  EXPECT_EQ(block.column("x_visible").as<uint8_t>(), (std::vector<uint8_t>{1, 1, 1, 1, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace lockstep
