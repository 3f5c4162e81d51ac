// Transforms that number categories.
#include <gtest/gtest.h>

#include <set>

#include "data/testing/test_columns.h"
#include "data/transform/column_values.h"

namespace lockstep {
namespace {

std::unique_ptr<Transform> vocabulary(const std::string& size, const std::string& min_count = "1") {
  return make_transform({"vocabulary", {{"columns", {"x"}}, {"size", {size}}, {"min_count", {min_count}}}});
}

// The hash is part of a run's identity: another one needs another version.
TEST(CategoryHash, HasGoldenValues) {
  EXPECT_EQ(hashed_id("merchant", 0, 1000), 340);
  EXPECT_EQ(hashed_id("merchant", 1, 1000), 624);
  EXPECT_EQ(hashed_id("", 0, 2147483647), 377700355);
}

TEST(HashTransform, NumbersCategoriesBelowItsBuckets) {
  std::vector<std::string> names;
  std::vector<std::optional<std::string_view>> texts;
  for (int i = 0; i < 500; ++i) names.push_back(fmt::format("m{}", i));
  texts.assign(names.begin(), names.end());
  texts.push_back(std::nullopt);
  const ColumnBlock block =
      transformed({"hash", {{"columns", {"x"}}, {"buckets", {"50"}}}}, {text_column("x", texts)});
  const auto& ids = block.column("x").as<int32_t>();
  const std::set<int32_t> used(ids.begin(), ids.end());
  EXPECT_EQ(used.size(), 50U);  // 0 for the missing one, and all others
  EXPECT_EQ(*used.begin(), 0);
  EXPECT_EQ(*used.rbegin(), 49);
  const ColumnBlock other = transformed({"hash", {{"columns", {"x"}}, {"buckets", {"50"}}, {"seed", {"1"}}}},
                                        {text_column("x", texts)});
  EXPECT_NE(other.column("x").as<int32_t>(), ids);
}

TEST(HashTransform, TakesNumbersByTheirText) {
  const TransformOptions options{"hash", {{"columns", {"x"}}, {"buckets", {"1000"}}}};
  EXPECT_EQ(values_of(transformed(options, {number_column("x", {7, 0.5})}), "x"),
            values_of(transformed(options, {text_column("x", {"7.0", "0.5"})}), "x"));
  // What a transform made is the same in all formats anyway.
  const std::vector<BlockColumn> from = {number_column("from", {7, 0.5})};
  const TransformOptions clip{"clip", {{"columns", {"from"}}, {"as", {"x"}}, {"high", {"9"}}}};
  ColumnBlock made = transformed(clip, from);
  make_transform(options)->apply({}, made);
  EXPECT_EQ(values_of(made, "x"), values_of(transformed(options, {text_column("x", {"7", "0.5"})}), "x"));
}

TEST(VocabularyTransform, NumbersByCountAndThenByBytes) {
  const auto transform = vocabulary("3");
  const ColumnBlock block =
      block_of({text_column("x", {"b", "c", "a", "c", "b", "d", "c", std::nullopt, "NA", "a"})});
  fit_blocks(*transform, {block});
  EXPECT_EQ(transform->fitted(), "column x: 3 words\nc\na\nb\n");
  ColumnBlock applied = block;
  transform->apply({}, applied);
  EXPECT_EQ(values_of(applied, "x"), "4 2 3 2 4 1 2 - - 3");
  EXPECT_EQ(transform->output(block.fields())[0].ids, 5);
}

TEST(VocabularyTransform, LeavesOutWhatIsRare) {
  const auto transform = vocabulary("10", "2");
  fit_blocks(*transform,
             {block_of({text_column("x", {"b", "a", "b"})}), block_of({text_column("x", {"a", "c"})})});
  EXPECT_EQ(transform->fitted(), "column x: 2 words\na\nb\n");
}

TEST(VocabularyTransform, IsReadBackWithEveryByte) {
  const auto transform = vocabulary("10");
  const ColumnBlock block = block_of({text_column("x", {"a\nb", "back\\slash", "\\n", "ü", " "})});
  fit_blocks(*transform, {block});
  const auto read = vocabulary("10");
  read->set_fitted(transform->fitted());
  EXPECT_EQ(read->fitted(), transform->fitted());
  ColumnBlock one = block, other = block;
  transform->apply({}, one);
  read->apply({}, other);
  EXPECT_EQ(values_of(one, "x"), values_of(other, "x"));
  EXPECT_EQ(values_of(one, "x").find('1'), std::string::npos);
  for (const char* wrong :
       {"", "column y: 1 words\na\n", "column x: 2 words\na\n", "column x: 1 words\na\nb\n"})
    EXPECT_THROW(read->set_fitted(wrong), UserError) << wrong;
}

TEST(VocabularyTransform, SaysWhereMemoryIsNotEnough) {
  const auto transform =
      make_transform({"vocabulary", {{"columns", {"x"}}, {"size", {"5"}}, {"memory", {"1"}}}});
  const std::string text(2 << 20, 'a');
  EXPECT_EQ(
      problem_with([&] { fit_blocks(*transform, {block_of({text_column("x", {text})})}); }),
      "transform vocabulary: counting the values of column 'x' takes more than 1 MiB; use hash, which counts "
      "nothing, or allow more with memory");
}

TEST(CrossTransform, TellsPairsApart) {
  const TransformOptions options{"cross", {{"columns", {"x", "y"}}, {"buckets", {"2147483647"}}}};
  const ColumnBlock block = transformed(
      options, {text_column("x", {"ab", "a", "ab", std::nullopt}), text_column("y", {"c", "bc", "c", "c"})});
  const auto& ids = block.column("x_x_y").as<int32_t>();
  EXPECT_EQ(ids[0], ids[2]);
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_EQ(ids[3], 0);
  EXPECT_TRUE(block.column("x_x_y").is_missing(3));
  EXPECT_EQ(problem_with([] {
              make_transform({"cross", {{"columns", {"x"}}, {"buckets", {"9"}}}});
            }),
            "transform cross: columns has only 'x'; name at least two");
}

}  // namespace
}  // namespace lockstep
