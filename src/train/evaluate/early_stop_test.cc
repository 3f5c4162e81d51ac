#include "train/evaluate/early_stop.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "train/evaluate/eval_result.h"

namespace lockstep {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The evaluation after which the run stops, counted from 1; 0 if it goes on.
int stops_at(EarlyStop stop, const std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i)
    if (stop.update(values[i])) return static_cast<int>(i) + 1;
  return 0;
}

TEST(EarlyStop, CountsEvaluationsWithoutProgress) {
  EXPECT_EQ(stops_at({"loss", 2, 0}, {3, 2, 2, 1, 1.5, 1}), 6);
  EXPECT_EQ(stops_at({"auc", 2, 0}, {0.5, 0.6, 0.55, 0.7, 0.7, 0.6, 0.9}), 6);
  EXPECT_EQ(stops_at({"loss", 0, 0}, {1, 2, 3, 4}), 0);
}

TEST(EarlyStop, SmallStepsAreNoProgressUntilTheyAddUp) {
  EXPECT_EQ(stops_at({"loss", 2, 0.5}, {3, 2.75, 2.25, 2, 1.5, 1.75}), 0);
  EXPECT_EQ(stops_at({"loss", 2, 0.5}, {3, 2.75, 2.5}), 3);
}

TEST(EarlyStop, NanIsNoProgress) {
  EXPECT_EQ(stops_at({"loss", 2, 0}, {kNan, kNan}), 2);
  EXPECT_EQ(stops_at({"loss", 2, 0}, {kNan, 5, kNan, 4, kNan, kNan}), 6);
}

TEST(EarlyStop, GoesOnFromItsState) {
  const std::vector<double> values{1.0 / 3, kNan, 0.3, 0.3, 0.31, 0.32};
  for (size_t cut = 0; cut <= values.size(); ++cut) {
    EarlyStop before("loss", 3, 1e-3);
    for (size_t i = 0; i < cut; ++i) before.update(values[i]);
    EarlyStop after("loss", 3, 1e-3);
    after.restore(nlohmann::json::parse(before.state().dump()));
    EXPECT_EQ(after.best(), before.best());
    EXPECT_EQ(after.should_stop(), before.should_stop());
    for (size_t i = cut; i < values.size(); ++i) EXPECT_EQ(after.update(values[i]), before.update(values[i]));
    EXPECT_TRUE(after.should_stop());
  }
}

TEST(EvalResult, UndefinedIsNotDiverged) {
  EvalResult one_class;
  one_class.loss = 0.5;
  one_class.auc = kNan;
  EXPECT_TRUE(is_undefined(one_class, "auc"));
  EXPECT_FALSE(is_undefined(one_class, "loss"));
  one_class.loss = kNan;
  EXPECT_FALSE(is_undefined(one_class, "auc"));
}

TEST(EvalResult, ComparesMetrics) {
  EXPECT_TRUE(is_better("loss", 1, 2));
  EXPECT_TRUE(is_better("perplexity", 1, 2));
  for (const char* metric : {"log_loss", "mae", "rmse"}) EXPECT_TRUE(is_better(metric, 1, 2));
  for (const char* metric : {"accuracy", "auc", "f1", "pr_auc", "macro_f1", "r2"})
    EXPECT_TRUE(is_better(metric, 2, 1));
  EXPECT_FALSE(is_better("loss", 1, 1));
  EXPECT_FALSE(is_better("loss", kNan, 1));
  EXPECT_TRUE(is_better("auc", 0, kNan));
  EXPECT_FALSE(is_better("auc", kNan, kNan));
}

}  // namespace
}  // namespace lockstep
