// The learning rates that a run uses, as its metrics show them, against the formulas of docs/scaling.md
// written out here once more.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "run/train_case.h"

namespace lockstep {
namespace {

constexpr int64_t kSteps = 12, kWarmup = 4;

long double rising(int64_t step) { return static_cast<long double>(step) / kWarmup; }
long double linear(int64_t step) { return static_cast<long double>(kSteps - step) / (kSteps - kWarmup); }
long double cosine(int64_t step) {
  const long double done = static_cast<long double>(step - kWarmup) / (kSteps - kWarmup);
  return (1 + std::cos(std::numbers::pi_v<long double> * done)) / 2;
}
long double inverse_sqrt(int64_t step) {
  return std::sqrt(static_cast<long double>(kWarmup) / static_cast<long double>(step));
}
long double constant(int64_t) { return 1; }

void expect_course(const TrainCase& job, const std::string& run, long double peak,
                   long double (*fall)(int64_t)) {
  const std::vector<StepRecord> steps = job.metrics(run).steps;
  ASSERT_EQ(static_cast<int64_t>(steps.size()), kSteps);
  for (const StepRecord& record : steps) {
    const auto expected =
        static_cast<double>(peak * (record.step <= kWarmup ? rising(record.step) : fall(record.step)));
    EXPECT_NEAR(record.lr, expected, 1e-15 * static_cast<double>(peak)) << run << " step " << record.step;
  }
}

TEST(RunLearningRate, FollowsTheBatchByTheRule) {
  const TrainCase job(kEncoderJob);
  const std::vector<std::pair<std::string, double>> peaks = {
      {"linear", 8e-4}, {"sqrt", 2.8284271247461903e-4}, {"none", 1e-4}};
  for (const auto& [rule, peak] : peaks) {
    EXPECT_NEAR(job.trained(rule, {"train.lr.scaling=" + rule}).peak_lr, peak, 1e-18);
    expect_course(job, rule, peak, linear);
  }
}

TEST(RunLearningRate, FollowsItsCourse) {
  const TrainCase job(kEncoderJob);
  const std::vector<std::pair<std::string, long double (*)(int64_t)>> courses = {
      {"cosine", cosine}, {"inverse_sqrt", inverse_sqrt}, {"constant", constant}};
  for (const auto& [course, fall] : courses) {
    job.trained(course, {"train.lr.scaling=none", "train.lr.decay=" + course});
    expect_course(job, course, 1e-4L, fall);
  }
}

TEST(RunLearningRate, IsTheSameForOneAndManyMicrobatches) {
  const TrainCase job(kEncoderJob);
  job.trained("one", {"train.microbatch=256"});
  const std::vector<StepRecord> expected = job.metrics("one").steps;
  for (const std::string microbatch : {"128", "32", "8"}) {
    job.trained(microbatch, {"train.microbatch=" + microbatch});
    const std::vector<StepRecord> found = job.metrics(microbatch).steps;
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].lr, expected[i].lr);
  }
}

// A resumed run goes on along the course.
TEST(RunLearningRate, GoesOnAfterAResume) {
  const TrainCase job(kEncoderJob);
  job.trained("cut", {"checkpoint.every=5"});
  for (const char* name : {"checkpoint-12", "summary.json"})
    std::filesystem::remove_all(job.output("cut") + "/" + name);
  EXPECT_EQ(job.trained("cut", {"checkpoint.every=5"}).restarts, 1);
  expect_course(job, "cut", 1e-4L * std::sqrt(8.0L), linear);
}

}  // namespace
}  // namespace lockstep
