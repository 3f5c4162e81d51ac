// Evaluation in a run: when it is made, what it judges, which checkpoint is the best, and when it ends a run.
#include <gtest/gtest.h>

#include "run/train_case.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

std::vector<int64_t> evaluated(const TrainCase& job, const std::string& run) {
  std::vector<int64_t> steps;
  for (const EvalRecord& record : job.metrics(run).evaluations) steps.push_back(record.step);
  return steps;
}

std::vector<int64_t> kept(const TrainCase& job, const std::string& run) {
  std::vector<int64_t> steps;
  for (const CheckpointInfo& checkpoint : list_checkpoints(job.output(run))) steps.push_back(checkpoint.step);
  return steps;
}

using Steps = std::vector<int64_t>;

TEST(RunEvaluation, ComesAsOftenAsAsked) {
  const TrainCase job(kGptJob);
  const std::vector<std::pair<std::string, Steps>> cadences = {
      {"7", {7, 14, 21, 28, 30}}, {"40%", {12, 24, 30}}, {"120 samples", {15, 30}}, {"", {30}}};
  for (const auto& [every, steps] : cadences) {
    const std::string run = "run" + std::to_string(steps.size());
    job.trained(run, {"train.eval.every=" + every});
    EXPECT_EQ(evaluated(job, run), steps) << every;
  }
}

TEST(RunEvaluation, JudgesWhatWasHeldOut) {
  const TrainCase job(kTabularJob);
  job.trained("run");
  for (const EvalRecord& record : job.metrics("run").evaluations) {
    EXPECT_EQ(record.samples, 60);
    EXPECT_TRUE(record.auc && record.accuracy);
    EXPECT_FALSE(record.perplexity);
  }
  const RunSummary summary = job.summary("run");
  ASSERT_TRUE(summary.final_eval && summary.best_eval);
  EXPECT_EQ(summary.final_eval->step, 30);
}

TEST(RunEvaluation, AnEpochSeesEveryRecordOnce) {
  const TrainCase job(kTabularJob);
  // 540 of 600 records are trained on, 32 at a time.
  EXPECT_EQ(job.trained("one", {"train.steps=", "train.epochs=1"}).steps, 17);
  EXPECT_EQ(job.trained("two and a half", {"train.steps=", "train.epochs=2.5"}).steps, 43);
}

// The average is what is judged; it does not touch what is trained.
TEST(RunEvaluation, JudgesTheMovingAverage) {
  const TrainCase job(kTabularJob);
  const RunSummary with = job.trained("with", {"train.ema=0.9"});
  const RunSummary without = job.trained("without", {"train.ema=0"});
  EXPECT_EQ(with.weights_sha256, without.weights_sha256);
  EXPECT_NE(with.final_eval->loss, without.final_eval->loss);
  EXPECT_TRUE(job.has("with", "checkpoint-30/average.safetensors"));
  EXPECT_FALSE(job.has("without", "checkpoint-30/average.safetensors"));
}

// The rate rises until it does harm, so the best evaluation lies in the middle.
TEST(RunEvaluation, TheBestCheckpointIsKeptAndMarked) {
  const TrainCase job(kGptJob);
  const RunSummary summary =
      job.trained("run", {"train.lr.base=2", "train.lr.warmup=30", "train.eval.every=2", "checkpoint.every=2",
                          "checkpoint.keep=1"});
  int64_t best = 0;
  double lowest = 1e30;
  for (const EvalRecord& record : job.metrics("run").evaluations) {
    EXPECT_EQ(record.best, record.loss < lowest) << "step " << record.step;
    if (record.loss < lowest) best = record.step;
    lowest = std::min(lowest, record.loss);
  }
  ASSERT_LT(best, 28) << "the best one would be kept anyway";
  ASSERT_TRUE(best_checkpoint(job.output("run")));
  EXPECT_EQ(best_checkpoint(job.output("run"))->step, best);
  EXPECT_EQ(summary.best_eval->step, best);
  EXPECT_EQ(kept(job, "run"), (Steps{best, 30}));
}

TEST(RunEvaluation, KeepsAsManyCheckpointsAsAsked) {
  const TrainCase job(kGptJob);
  const std::vector<std::pair<std::string, Steps>> cases = {
      {"1", {30}}, {"3", {20, 25, 30}}, {"0", {5, 10, 15, 20, 25, 30}}};
  for (const auto& [keep, steps] : cases) {
    job.trained("keep" + keep, {"checkpoint.every=5", "checkpoint.keep=" + keep, "train.eval.every="});
    EXPECT_EQ(kept(job, "keep" + keep), steps);
  }
}

// With a rate of 0 no evaluation is better than the first.
TEST(RunEvaluation, EndsARunWithoutProgress) {
  const TrainCase job(kGptJob);
  const std::vector<std::string> settings = {"train.lr.base=0", "train.eval.every=2",
                                             "train.early_stop.patience=2"};
  const RunSummary summary = job.trained("run", settings);
  EXPECT_EQ(summary.status, "stopped_early");
  EXPECT_EQ(summary.steps, 6);
  EXPECT_EQ(summary.exit_code, 0);
  EXPECT_EQ(kept(job, "run").back(), 6);
  // Started again it has nothing left to do.
  const std::string metrics = job.text("run", "metrics.jsonl");
  EXPECT_EQ(job.trained("run", settings).status, "stopped_early");
  EXPECT_EQ(job.text("run", "metrics.jsonl"), metrics);
  // Nor does it go further when it has lost its last checkpoint.
  std::filesystem::remove_all(job.output("run") + "/checkpoint-6");
  const RunSummary again = job.trained("run", settings);
  EXPECT_EQ(again.steps, 6);
  EXPECT_EQ(again.weights_sha256, summary.weights_sha256);
}

TEST(RunEvaluation, SmallChangesAreNoProgress) {
  const TrainCase job(kGptJob);
  const RunSummary summary = job.trained(
      "run", {"train.eval.every=2", "train.early_stop.patience=3", "train.early_stop.min_delta=100"});
  EXPECT_EQ(summary.status, "stopped_early");
  EXPECT_EQ(summary.steps, 8);
}

}  // namespace
}  // namespace lockstep
