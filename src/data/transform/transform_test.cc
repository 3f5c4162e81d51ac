// Transforms one after another: what they need of files, and in which passes they are fitted.
#include "data/transform/transform.h"

#include <gtest/gtest.h>

#include "data/testing/test_columns.h"

namespace lockstep {
namespace {

Transforms chain_of(const std::vector<TransformOptions>& list) {
  Transforms chain;
  for (const TransformOptions& options : list) chain.push_back(make_transform(options));
  return chain;
}

TEST(TransformChain, AsksFilesForWhatNobodyMakes) {
  const Transforms chain =
      chain_of({{"bucketise", {{"columns", {"amount"}}, {"as", {"bucket"}}, {"quantiles", {"4"}}}},
                {"cross", {{"columns", {"bucket", "country", "amount"}}, {"buckets", {"9"}}}},
                {"cast", {{"columns", {"code"}}, {"to", {"i32"}}}},
                {"clip", {{"columns", {"code"}}}}});
  const std::vector<BlockField> expected{{"amount", ValueType::kF64, 1},  // though cross would take its text
                                         {"country", ValueType::kBytes, 1},
                                         {"code", ValueType::kBytes, 1}};  // though clip wants a number
  EXPECT_EQ(columns_to_decode(chain), expected);
}

TEST(TransformChain, KnowsWhatIsMade) {
  const Transforms chain = chain_of(
      {{"hash", {{"columns", {"b"}}, {"buckets", {"9"}}}}, {"clip", {{"columns", {"a"}}, {"as", {"c"}}}}});
  const std::vector<BlockField> in_files{{"a", ValueType::kBytes, 1}, {"b", ValueType::kBytes, 1}};
  const std::vector<BlockField> made = made_columns(chain, {"hash", "clip"}, in_files);
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].name, "b");
  EXPECT_EQ(made[0].ids, 9);
  EXPECT_EQ(made[1], (BlockField{"c", ValueType::kF64, 1}));
  EXPECT_EQ(problem_with([&] {
              made_columns(chain, {"hash", "clip"}, {in_files[1]});
            }),
            "transform clip: there is no column 'a'; did you mean b?");
}

TEST(TransformChain, IsFittedInAsFewPassesAsItCan) {
  const Transforms chain = chain_of({{"normalise", {{"columns", {"a"}}}},
                                     {"vocabulary", {{"columns", {"b"}}, {"size", {"5"}}}},
                                     {"clip", {{"columns", {"a"}}, {"high", {"1"}}}},
                                     {"bucketise", {{"columns", {"a"}}, {"quantiles", {"5"}}}},
                                     {"log", {{"columns", {"c"}}}}});
  std::vector<bool> ready{false, false, true, false, true};
  FitPass pass = next_pass(chain, ready);
  EXPECT_EQ(pass.fit, (std::vector<bool>{true, true, false, false, false}));
  EXPECT_EQ(pass.apply, (std::vector<bool>{false, false, false, false, true}));
  ready = {true, true, true, false, true};
  pass = next_pass(chain, ready);
  EXPECT_EQ(pass.fit, (std::vector<bool>{false, false, false, true, false}));
  EXPECT_EQ(pass.apply, (std::vector<bool>{true, true, true, false, true}));
  EXPECT_FALSE(next_pass(chain, std::vector<bool>(5, true)).any());
}

}  // namespace
}  // namespace lockstep
