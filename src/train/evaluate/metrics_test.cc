#include "train/evaluate/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "data/source/source.h"

namespace lockstep {
namespace {

struct Drawn {
  std::vector<float> scores, labels;
  BinaryScores metrics;
};

// `levels` different scores at most, so that there are ties; positives score higher more often than not.
Drawn draw(int64_t count, int levels, uint32_t seed) {
  Drawn drawn;
  uint32_t state = seed * 2654435761u + 1u;
  const auto next = [&state] {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
  };
  for (int64_t i = 0; i < count; ++i) {
    const bool positive = next() % 4 == 0;
    const uint32_t level = next() % static_cast<uint32_t>(levels);
    const uint32_t other = next() % static_cast<uint32_t>(levels);
    drawn.scores.push_back(0.25f * static_cast<float>(positive ? std::max(level, other) : level) - 3.0f);
    drawn.labels.push_back(positive ? 1.0f : 0.0f);
  }
  drawn.metrics.add(drawn.scores, drawn.labels);
  return drawn;
}

double auc_by_pairs(const Drawn& drawn) {
  double right = 0, pairs = 0;
  for (size_t p = 0; p < drawn.scores.size(); ++p)
    for (size_t n = 0; n < drawn.scores.size(); ++n) {
      if (drawn.labels[p] == 0.0f || drawn.labels[n] == 1.0f) continue;
      pairs += 1;
      right += drawn.scores[p] > drawn.scores[n] ? 1.0 : drawn.scores[p] == drawn.scores[n] ? 0.5 : 0.0;
    }
  return right / pairs;
}

TEST(Metrics, AucEqualsCountingAllPairs) {
  for (const int levels : {1, 2, 5, 40, 100000})
    for (uint32_t seed = 0; seed < 5; ++seed) {
      const Drawn drawn = draw(300, levels, seed);
      EXPECT_EQ(drawn.metrics.auc(), auc_by_pairs(drawn)) << levels << " levels, seed " << seed;
    }
}

// The definition: over the distinct scores from the top, precision there times the recall that is gained.
TEST(Metrics, PrAucEqualsTheSumOverThresholds) {
  for (const int levels : {1, 2, 5, 40, 100000})
    for (uint32_t seed = 0; seed < 5; ++seed) {
      const Drawn drawn = draw(300, levels, seed);
      std::vector<float> tried = drawn.scores;
      std::sort(tried.begin(), tried.end(), std::greater<>());
      tried.erase(std::unique(tried.begin(), tried.end()), tried.end());
      double area = 0, before = 0;
      for (const float threshold : tried) {
        const BinaryCounts counts = drawn.metrics.at(threshold);
        area += (counts.recall() - before) * counts.precision();
        before = counts.recall();
      }
      EXPECT_NEAR(drawn.metrics.pr_auc(), area, 1e-12);
    }
  BinaryScores known;  // 1 * 1/3 + 2/3 * 1/3 + 3/4 * 1/3
  known.add(std::vector<float>{0.9f, 0.8f, 0.5f, 0.4f, 0.1f}, std::vector<float>{1, 0, 1, 1, 0});
  EXPECT_DOUBLE_EQ(known.pr_auc(), (1.0 + 2.0 / 3 + 3.0 / 4) / 3);
}

TEST(Metrics, LogLossOfLogits) {
  BinaryScores scores;
  scores.add(std::vector<float>{2.0f, -1.0f, 0.0f, 80.0f}, std::vector<float>{1, 1, 0, 0});
  const double expected = (std::log1p(std::exp(-2.0)) + std::log1p(std::exp(1.0)) + std::log(2.0) + 80.0) / 4;
  EXPECT_NEAR(scores.log_loss(), expected, 1e-14 * expected);
}

TEST(Metrics, ClassesHaveAMacroF1) {
  ClassConfusion confusion;
  EXPECT_TRUE(std::isnan(confusion.macro_f1()));
  // Class 0: 2 right of 3 labels and 2 predictions; 1: 1 of 2 and 3; 2: 1 of 1 and 1; 3: predicted, no label.
  confusion.add(std::vector<int32_t>{0, 0, 1, 1, 1}, std::vector<int32_t>{0, 0, 0, 1, kIgnoredLabel});
  confusion.add(std::vector<int32_t>{3, 2}, std::vector<int32_t>{1, 2});
  EXPECT_DOUBLE_EQ(confusion.macro_f1(), (4.0 / 5 + 2.0 / 4 + 2.0 / 2 + 0) / 4);
  EXPECT_DOUBLE_EQ(confusion.accuracy(), 4.0 / 6);
}

TEST(Metrics, LogitsOfClassesGiveTheirChoiceAndLogLoss) {
  ClassConfusion confusion;
  const std::vector<float> logits = {1, 2, 0.5f, 3, 3, -90};
  confusion.add_logits(logits, 3, std::vector<int32_t>{1, 2});
  EXPECT_EQ(confusion.accuracy(), 0.5);
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(0.5)) - 2;
  const double second = 3 + std::log(2.0) + 90;
  EXPECT_NEAR(confusion.log_loss(), (first + second) / 2, 1e-13 * second);
  confusion.add_logits(std::vector<float>{std::nanf(""), 0, 0}, 3, std::vector<int32_t>{0});
  EXPECT_TRUE(std::isnan(confusion.log_loss()));
}

TEST(Metrics, ErrorsOfValuesAreInTheirUnits) {
  ValueErrors errors(10);
  errors.add(std::vector<float>{1, 2}, std::vector<float>{0, 2});
  errors.add(std::vector<float>{-1, 4.5f}, std::vector<float>{-1, 4});
  EXPECT_DOUBLE_EQ(errors.mae(), 10 * 1.5 / 4);
  EXPECT_DOUBLE_EQ(errors.rmse(), 10 * std::sqrt(1.25 / 4));
  // Labels 0, 2, -1, 4 have mean 1.25 and squared differences 14.75 in all.
  EXPECT_DOUBLE_EQ(errors.r2(), 1 - 1.25 / 14.75);
  ValueErrors alike;
  EXPECT_TRUE(std::isnan(alike.mae()) && std::isnan(alike.rmse()) && std::isnan(alike.r2()));
  alike.add(std::vector<float>{1, 2}, std::vector<float>{3, 3});
  EXPECT_TRUE(std::isnan(alike.r2()));
  EXPECT_EQ(alike.mae(), 1.5);
}

TEST(Metrics, BestF1EqualsTryingAllThresholds) {
  for (const int levels : {1, 2, 5, 40, 100000})
    for (uint32_t seed = 0; seed < 5; ++seed) {
      const Drawn drawn = draw(200, levels, seed);
      double best = 0;
      float threshold = std::numeric_limits<float>::infinity();
      std::vector<float> tried = drawn.scores;
      std::sort(tried.begin(), tried.end(), std::greater<>());
      for (const float score : tried) {
        const double f1 = drawn.metrics.at(score).f1();
        if (f1 <= best) continue;
        best = f1;
        threshold = score;
      }
      EXPECT_EQ(drawn.metrics.best_f1().f1, best);
      EXPECT_EQ(drawn.metrics.best_f1().threshold, threshold);
    }
}

TEST(Metrics, OrderOfSamplesChangesNoBit) {
  const Drawn drawn = draw(1000, 60, 7);
  BinaryScores backwards;
  for (size_t i = drawn.scores.size(); i-- > 0;) backwards.add(drawn.scores[i], drawn.labels[i] > 0.5f);
  EXPECT_EQ(backwards.auc(), drawn.metrics.auc());
  EXPECT_EQ(backwards.best_f1().f1, drawn.metrics.best_f1().f1);
}

TEST(Metrics, CountsAtAThreshold) {
  BinaryScores scores;
  scores.add(std::vector<float>{0.9f, 0.8f, 0.5f, 0.4f, 0.1f}, std::vector<float>{1, 0, 1, 1, 0});
  const BinaryCounts counts = scores.at(0.5f);
  EXPECT_EQ(counts, (BinaryCounts{2, 1, 1, 1}));
  EXPECT_EQ(counts.accuracy(), 3.0 / 5);
  EXPECT_EQ(counts.precision(), 2.0 / 3);
  EXPECT_EQ(counts.recall(), 2.0 / 3);
  EXPECT_EQ(counts.f1(), 4.0 / 6);
  EXPECT_EQ(scores.best_f1().f1, 6.0 / 7);
  EXPECT_EQ(scores.best_f1().threshold, 0.4f);
}

TEST(Metrics, ClassesLeaveIgnoredLabelsOut) {
  ClassCounts counts;
  EXPECT_TRUE(std::isnan(counts.accuracy()));
  counts.add(std::vector<int32_t>{3, 1, 0, 2}, std::vector<int32_t>{3, 2, kIgnoredLabel, 2});
  counts.add(std::vector<int32_t>{kIgnoredLabel}, std::vector<int32_t>{kIgnoredLabel});
  EXPECT_EQ(counts.count, 3);
  EXPECT_EQ(counts.accuracy(), 2.0 / 3);
}

TEST(Metrics, PerfectAndReversedRanking) {
  BinaryScores perfect, reversed;
  for (int i = 0; i < 10; ++i) {
    perfect.add(static_cast<float>(i), i >= 7);
    reversed.add(static_cast<float>(i), i < 3);
  }
  EXPECT_EQ(perfect.auc(), 1.0);
  EXPECT_EQ(perfect.best_f1().f1, 1.0);
  EXPECT_EQ(perfect.best_f1().threshold, 7.0f);
  EXPECT_EQ(reversed.auc(), 0.0);
}

TEST(Metrics, UndefinedIsNan) {
  BinaryScores scores;
  EXPECT_TRUE(std::isnan(scores.auc()));
  EXPECT_TRUE(std::isnan(scores.best_f1().f1));
  EXPECT_TRUE(std::isnan(scores.at(0).accuracy()));
  EXPECT_TRUE(std::isnan(scores.pr_auc()));
  EXPECT_TRUE(std::isnan(scores.log_loss()));
  scores.add(1.0f, true);
  EXPECT_TRUE(std::isnan(scores.auc()));
  EXPECT_EQ(scores.at(2.0f).f1(), 0.0);
  scores.add(std::numeric_limits<float>::quiet_NaN(), false);
  EXPECT_TRUE(std::isnan(scores.auc()));
  EXPECT_EQ(scores.at(0.0f), (BinaryCounts{1, 0, 0, 1}));
}

TEST(Metrics, InfiniteScoresRank) {
  BinaryScores scores;
  const float inf = std::numeric_limits<float>::infinity();
  scores.add(std::vector<float>{inf, 1.0f, -inf, -inf}, std::vector<float>{1, 0, 0, 1});
  EXPECT_EQ(scores.auc(), 2.5 / 4);
}

TEST(Metrics, LossIsWeightedByCount) {
  LossSum sum;
  EXPECT_TRUE(std::isnan(sum.mean()));
  EXPECT_TRUE(std::isnan(sum.perplexity()));
  sum.add(30, 10);
  sum.add(2, 6);
  EXPECT_EQ(sum.mean(), 2.0);
  EXPECT_NEAR(sum.perplexity(), std::exp(2.0), 1e-14);
  sum.add(1e9, 1);
  EXPECT_EQ(sum.perplexity(), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace lockstep
