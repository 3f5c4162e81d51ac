// Text as tokens of equal number.
#include <gtest/gtest.h>

#include "data/testing/test_columns.h"
#include "data/transform/model_inputs.h"

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

ColumnBlock encoded_text(const EncodeTextOptions& options, const std::vector<BlockColumn>& columns,
                         const std::vector<TransformOptions>& before = {}) {
  ColumnBlock block = block_of(columns);
  for (const TransformOptions& each : before) make_transform(each)->apply({}, block);
  const EncodeText encode(options);
  encode.output(block.fields());
  encode.apply({}, block);
  check_block(block);
  return block;
}

TEST(EncodeTextTransform, OpensCutsAndFillsRows) {
  const EncodeTextOptions options{"x", "y", 4, 257, 3};
  const ColumnBlock block = encoded_text(options, {text_column("x", {"a", "abcd", std::nullopt, "\xff"}),
                                                   text_column("y", {"0", "2", "1", "1"})});
  EXPECT_EQ(block.column("tokens").as<int32_t>(),
            (std::vector<int32_t>{0, 98, 0, 0, 0, 98, 99, 100, 0, 0, 0, 0, 0, 256, 0, 0}));
  EXPECT_EQ(block.column("keys_visible").as<uint8_t>(),
            (std::vector<uint8_t>{1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(block.column("labels").as<int32_t>(), (std::vector<int32_t>{0, 2, 1, 1}));
}

TEST(EncodeTextTransform, TakesTokensAsTheyAre) {
  const EncodeTextOptions options{"x", "y", 4, 300, 3};
  const std::vector<BlockColumn> columns{text_column("x", {"a", "abcde"}), text_column("y", {"0", "1"})};
  const TransformOptions tokenise{"tokenise", {{"columns", {"x"}}, {"shift", {"2"}}, {"first", {"1"}}}};
  const TransformOptions pad{"pad", {{"columns", {"x"}}, {"length", {"3"}}}};
  EXPECT_EQ(encoded_text(options, columns, {tokenise}).column("tokens").as<int32_t>(),
            (std::vector<int32_t>{1, 99, 0, 0, 1, 99, 100, 101}));
  const ColumnBlock padded = encoded_text(options, columns, {tokenise, pad});
  EXPECT_EQ(padded.column("tokens").as<int32_t>(), (std::vector<int32_t>{1, 99, 0, 0, 1, 99, 100, 0}));
  EXPECT_EQ(padded.column("keys_visible").as<uint8_t>(), (std::vector<uint8_t>{1, 1, 0, 0, 1, 1, 1, 0}));
}

TEST(EncodeTextTransform, SaysWhatItCannotUse) {
  const auto says = [](const EncodeTextOptions& options, const BlockColumn& text, const char* label) {
    return problem_with([&] { encoded_text(options, {text, text_column("y", {label})}); });
  };
  EXPECT_EQ(says({"x", "y", 4, 257, 3}, text_column("x", {"a"}), "3"),
            "the label 'y' is '3'; it must be a whole number below 3, the model's classes");
  EXPECT_EQ(says({"x", "y", 4, 90, 3}, text_column("x", {"a"}), "0"),
            "column 'x' has the token 98, which is not in the vocabulary of 90; set model.vocab to more "
            "(bytes take 257)");
  EXPECT_EQ(says({"x", "y", 4, 90, 3}, number_column("x", {1}), "0"),
            "column 'x' holds f64, not text or tokens; the encoder cannot read it");
}

}  // namespace
}  // namespace lockstep
