#include "train/evaluate/curves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "train/evaluate/metrics.h"

namespace lockstep {
namespace {

std::vector<ScoredLabel> drawn(int count, int levels) {
  std::vector<ScoredLabel> samples;
  uint32_t state = 12345;
  const auto next = [&state] {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
  };
  for (int i = 0; i < count; ++i) {
    const bool positive = next() % 5 == 0;
    samples.push_back(
        {0.5f * static_cast<float>(next() % static_cast<uint32_t>(levels)) + (positive ? 1.0f : 0.0f),
         positive});
  }
  return samples;
}

TEST(Curves, PointsAreTheCountsAtTheirThresholds) {
  for (const int levels : {1, 3, 50, 100000}) {
    const std::vector<ScoredLabel> samples = drawn(400, levels);
    BinaryScores scores;
    for (const ScoredLabel& sample : samples) scores.add(sample.score, sample.positive);
    const ThresholdCurve curve(samples);
    EXPECT_EQ(curve.positives(), scores.positives());
    for (const ThresholdPoint& point : curve.points()) {
      const BinaryCounts counts = scores.at(point.score);
      EXPECT_EQ(point.true_positive, counts.true_positive);
      EXPECT_EQ(point.false_positive, counts.false_positive);
      EXPECT_EQ(curve.recall(point), counts.recall());
    }
    EXPECT_EQ(curve.points().back().true_positive, curve.positives());
    EXPECT_EQ(curve.points().back().false_positive, curve.negatives());
  }
}

// The area under the ROC curve by trapezoids is the share of pairs in order.
TEST(Curves, EnclosesTheAreaThatAucCounts) {
  const std::vector<ScoredLabel> samples = drawn(300, 20);
  BinaryScores scores;
  for (const ScoredLabel& sample : samples) scores.add(sample.score, sample.positive);
  const ThresholdCurve curve(samples);
  double area = 0, x = 0, y = 0;
  for (const ThresholdPoint& point : curve.points()) {
    area += (curve.false_positive_rate(point) - x) * (curve.recall(point) + y) / 2;
    x = curve.false_positive_rate(point);
    y = curve.recall(point);
  }
  EXPECT_NEAR(area, scores.auc(), 1e-12);
}

TEST(Curves, AveragePrecisionByHand) {
  const ThresholdCurve curve({{4, true}, {3, false}, {2, true}, {1, false}});
  EXPECT_EQ(curve.average_precision(), (1.0 + 2.0 / 3) / 2);
  EXPECT_EQ(ThresholdCurve({{2, true}, {1, false}}).average_precision(), 1.0);
  EXPECT_TRUE(std::isnan(ThresholdCurve({{1, false}}).average_precision()));
  // Ties are one threshold.
  EXPECT_EQ(ThresholdCurve({{1, true}, {1, false}}).average_precision(), 0.5);
}

TEST(Curves, SomePointsKeepBothEnds) {
  const ThresholdCurve curve(drawn(5000, 100000));
  const std::vector<ThresholdPoint> some = curve.some(50);
  EXPECT_EQ(some.size(), 50u);
  EXPECT_EQ(some.front(), curve.points().front());
  EXPECT_EQ(some.back(), curve.points().back());
  EXPECT_EQ(curve.some(1 << 20), curve.points());
}

TEST(Curves, ScoresThatAreNoNumberAreNeverPredicted) {
  const ThresholdCurve curve({{std::numeric_limits<float>::quiet_NaN(), true}, {1, true}, {0, false}});
  EXPECT_EQ(curve.positives(), 2);
  EXPECT_EQ(curve.recall(curve.points().back()), 0.5);
}

TEST(Curves, CalibrationByHand) {
  const std::vector<double> probabilities = {0.05, 0.15, 0.1, 0.95, 1.0};
  const Calibration calibration = calibration_of(probabilities, {false, true, false, true, false}, 10);
  ASSERT_EQ(calibration.bins.size(), 10u);
  EXPECT_EQ(calibration.bins[0].count, 1);
  EXPECT_EQ(calibration.bins[1].count, 2);
  EXPECT_EQ(calibration.bins[1].observed, 0.5);
  EXPECT_DOUBLE_EQ(calibration.bins[1].predicted, 0.125);
  EXPECT_EQ(calibration.bins[9].count, 2);
  EXPECT_NEAR(calibration.expected_error, (0.05 + std::fabs(0.25 - 1) + std::fabs(1.95 - 1)) / 5, 1e-15);
}

TEST(Curves, ConfusionCountsTruthDown) {
  ConfusionMatrix matrix(3);
  matrix.add(0, 2);
  matrix.add(0, 2);
  matrix.add(1, 1, 5);
  EXPECT_EQ(matrix.at(0, 2), 2);
  EXPECT_EQ(matrix.at(2, 0), 0);
  EXPECT_EQ(matrix.at(1, 1), 5);
}

}  // namespace
}  // namespace lockstep
