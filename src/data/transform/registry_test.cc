// What holds for every transform: its settings are described, its text has them all, its errors help.
#include <gtest/gtest.h>

#include "data/testing/test_columns.h"
#include "data/transform/settings.h"

namespace lockstep {
namespace {

TEST(TransformRegistry, IsInTheOrderOfItsNames) {
  std::string_view last;
  for (const TransformEntry* entry : transform_entries()) {
    EXPECT_LT(last, entry->name);
    last = entry->name;
    EXPECT_EQ(find_transform(entry->name), entry);
  }
}

TEST(TransformRegistry, AnUnknownNameOrSettingIsAnErrorWithASuggestion) {
  EXPECT_EQ(problem_with([] {
              make_transform({"bucketize", {}});
            }),
            "there is no transform 'bucketize'; did you mean bucketise?");
  EXPECT_EQ(problem_with([] {
              make_transform({"clip", {{"columns", {"a"}}, {"hihg", {"3"}}}});
            }),
            "transform clip has no setting 'hihg'; did you mean high?");
  EXPECT_EQ(problem_with([] {
              make_transform({"clip", {{"columns", {"a"}}, {"high", {"much"}}}});
            }),
            "transform clip: high is 'much'; write a number");
  EXPECT_EQ(problem_with([] {
              make_transform({"hash", {{"columns", {"a"}}, {"buckets", {"1"}}}});
            }),
            "transform hash: buckets is 1; write a whole number from 2 to 2147483647");
  EXPECT_EQ(problem_with([] {
              make_transform({"log", {{"columns", {"a"}}, {"method", {"log2"}}}});
            }),
            "transform log: method is 'log2'; write log1p or signed or log");
}

TEST(TransformRegistry, EverySettingIsInTheText) {
  const auto text = [](const std::string& key, const std::vector<std::string>& values) {
    TransformOptions options{"clip", {{"columns", {"a"}}, {"low", {"1"}}}};
    options.settings[key] = values;
    return make_transform(options)->text();
  };
  EXPECT_EQ(text("low", {"1"}), "clip 2 columns=1:a, low=1:1,");
  EXPECT_NE(text("low", {"2"}), text("low", {"1"}));
  EXPECT_NE(text("columns", {"a", "b"}), text("columns", {"a,1:b"}));
}

TEST(TransformRegistry, ColumnsAreNamedAndTypedInErrors) {
  const std::vector<BlockField> fields{
      {"amount", ValueType::kF64, 1}, {"name", ValueType::kBytes, 1}, {"list", ValueType::kF32, 3}};
  const auto says = [&](const TransformOptions& options) {
    return problem_with([&] { make_transform(options)->output(fields); });
  };
  EXPECT_EQ(says({"clip", {{"columns", {"amout"}}}}), "the data has no column 'amout'; did you mean amount?");
  EXPECT_EQ(says({"clip", {{"columns", {"name"}}}}),
            "transform clip: column 'name' holds text (bytes), not numbers; cast it first");
  EXPECT_EQ(says({"hash", {{"columns", {"list"}}, {"buckets", {"9"}}}}),
            "transform hash: column 'list' holds several values in a record, not one");
  EXPECT_EQ(says({"pad", {{"columns", {"name"}}, {"length", {"9"}}}}),
            "transform pad: column 'name' holds bytes, not tokens; tokenise it first");
}

TEST(TransformRegistry, NamesMustBeAsManyAsColumns) {
  EXPECT_EQ(problem_with([] {
              make_transform({"clip", {{"columns", {"a", "b"}}, {"as", {"c"}}}});
            }),
            "transform clip: as has 1 names for 2 columns; give each one");
  EXPECT_EQ(problem_with([] {
              make_transform({"clip", {{"columns", {"a", "a"}}}});
            }),
            "transform clip: columns has 'a' twice");
}

TEST(TransformRegistry, ColumnsMayBeExchanged) {
  const ColumnBlock block =
      transformed({"clip", {{"columns", {"a", "b"}}, {"as", {"b", "a"}}, {"high", {"5"}}}},
                  {number_column("a", {1, 9}), number_column("b", {3, 4})});
  EXPECT_EQ(values_of(block, "a"), "3 4");
  EXPECT_EQ(values_of(block, "b"), "1 5");
}

}  // namespace
}  // namespace lockstep
