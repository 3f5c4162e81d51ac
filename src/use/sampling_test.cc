#include "use/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error.h"

namespace lockstep {
namespace {

int32_t pick(std::vector<float> logits, const Sampling& sampling, std::vector<int32_t> seen = {},
             int64_t draw = 0) {
  return next_token(logits, sampling, seen, draw);
}

std::map<int32_t, int> counts(const std::vector<float>& logits, const Sampling& sampling, int draws) {
  std::map<int32_t, int> result;
  for (int i = 0; i < draws; ++i) ++result[pick(logits, sampling, {}, i)];
  return result;
}

const float kNan = std::nanf("");

TEST(Sampling, GreedyTakesTheFirstOfTheLargest) {
  EXPECT_EQ(pick({1, 3, 3, 2}, {}), 1);
  EXPECT_EQ(pick({kNan, -5, -4}, {}), 2);
  EXPECT_THROW(pick({kNan, kNan}, {}), UserError);
}

TEST(Sampling, PenaltyCountsEveryTokenOnceAndPushesDownOnBothSidesOfZero) {
  Sampling sampling{.repetition_penalty = 2};
  EXPECT_EQ(pick({4, 3, 1}, sampling, {0, 0, 0}), 1);
  EXPECT_EQ(pick({4, 1.9f, 1}, sampling, {0, 0, 0}), 0);  // 4 / 2, not 4 / 8
  EXPECT_EQ(pick({-1, -1.5f}, sampling, {0}), 1);
}

TEST(Sampling, DrawsAreAFunctionOfSeedAndNumber) {
  const std::vector<float> logits{0, 0, 0, 0, 0, 0, 0, 0};
  Sampling sampling{.greedy = false, .seed = 7};
  std::vector<int32_t> once, again, other;
  for (int i = 0; i < 64; ++i) once.push_back(pick(logits, sampling, {}, i));
  for (int i = 63; i >= 0; --i) again.insert(again.begin(), pick(logits, sampling, {}, i));
  sampling.seed = 8;
  for (int i = 0; i < 64; ++i) other.push_back(pick(logits, sampling, {}, i));
  EXPECT_EQ(once, again);
  EXPECT_NE(once, other);
}

TEST(Sampling, DrawsHaveTheProbabilitiesOfTheLogits) {
  const std::vector<float> logits{std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  auto drawn = counts(logits, {.greedy = false}, 20000);
  EXPECT_NEAR(drawn[0] / 20000.0, 0.5, 0.015);
  EXPECT_NEAR(drawn[1] / 20000.0, 0.3, 0.015);
  // At half the temperature probabilities are squared.
  drawn = counts(logits, {.greedy = false, .temperature = 0.5}, 20000);
  EXPECT_NEAR(drawn[0] / 20000.0, 0.25 / 0.38, 0.015);
}

TEST(Sampling, TopKKeepsEquals) {
  const auto drawn = counts({1, 2, 2, 0, 3}, {.greedy = false, .top_k = 2}, 2000);
  EXPECT_EQ(drawn.size(), 3u);
  EXPECT_FALSE(drawn.contains(0));
  EXPECT_FALSE(drawn.contains(3));
}

TEST(Sampling, TopPKeepsTheFewestThatReachItAndAtLeastOne) {
  const std::vector<float> logits{std::log(0.1f), std::log(0.6f), std::log(0.3f)};
  EXPECT_EQ(counts(logits, {.greedy = false, .top_p = 0.85}, 2000).size(), 2u);
  const auto one = counts(logits, {.greedy = false, .top_p = 0.01}, 500);
  EXPECT_EQ(one.size(), 1u);
  EXPECT_TRUE(one.contains(1));
}

}  // namespace
}  // namespace lockstep
