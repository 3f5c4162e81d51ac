// A run whose weights are bf16 alone: what its checkpoints hold, how it evaluates, and that it goes on.
#include <gtest/gtest.h>

#include "run/train_case.h"
#include "safetensors/reader.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

const Settings kPure = {"train.precision=bf16_pure", "train.lr.decay=constant"};

Settings with(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

void expect_stored_in(const TrainCase& job, const std::string& file, DType dtype) {
  const SafetensorsReader reader(job.output("run") + "/checkpoint-6/" + file);
  ASSERT_FALSE(reader.tensors().empty());
  for (const TensorEntry& entry : reader.tensors())
    EXPECT_EQ(entry.tensor.dtype, dtype) << file << ": " << entry.tensor.name;
}

TEST(RunPrecision, CheckpointsHoldWhatTheRunHolds) {
  const TrainCase job(kLlamaJob);
  job.trained("run", with(kPure, {"train.steps=6", "train.moments=bf16", "train.ema=0.9"}));
  expect_stored_in(job, "model.safetensors", DType::kBF16);
  expect_stored_in(job, "optimizer.safetensors", DType::kBF16);
  expect_stored_in(job, "average.safetensors", DType::kF32);
}

TEST(RunPrecision, MomentsAreFp32UnlessAsked) {
  const TrainCase job(kLlamaJob);
  job.trained("run", with(kPure, {"train.steps=6"}));
  expect_stored_in(job, "model.safetensors", DType::kBF16);
  expect_stored_in(job, "optimizer.safetensors", DType::kF32);
}

TEST(RunPrecision, GoesOnOnAnyLayout) {
  const TrainCase job(kLlamaJob);
  const Settings settings = with(kPure, {"train.moments=bf16", "strategy.leaves=4", "strategy.threads=1"});
  const RunSummary whole = job.trained("whole", with(settings, {"train.steps=12"}));
  job.trained("parts", with(settings, {"train.steps=5", "strategy.workers=2"}));
  const RunSummary parts = job.trained("parts", with(settings, {"train.steps=12", "strategy.workers=3"}));
  EXPECT_EQ(parts.weights_sha256, whole.weights_sha256);
  EXPECT_EQ(parts.restarts, 1);
  expect_same_steps(job.metrics("parts"), job.metrics("whole"));
}

// Averages are f32, the weights are not: what is evaluated is built for either.
TEST(RunPrecision, EvaluatesWeightsAndAverages) {
  const TrainCase job(kLlamaJob);
  job.trained("weights", with(kPure, {"train.steps=14"}));
  job.trained("averages", with(kPure, {"train.steps=14", "train.ema=0.5"}));
  const Metrics weights = job.metrics("weights"), averages = job.metrics("averages");
  expect_same_steps(averages, weights);
  ASSERT_EQ(weights.evaluations.size(), 2U);
  ASSERT_EQ(averages.evaluations.size(), 2U);
  EXPECT_NE(averages.evaluations[1].loss, weights.evaluations[1].loss);
  EXPECT_NEAR(averages.evaluations[1].loss, weights.evaluations[1].loss, 0.1);
}

}  // namespace
}  // namespace lockstep
