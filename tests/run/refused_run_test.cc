// Runs that cannot begin or cannot go on: the exit code, the words, and what is left behind.
#include <gtest/gtest.h>

#include "run/train_case.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

void expect_says(const Ended& ended, int code, const std::vector<std::string>& words) {
  EXPECT_EQ(ended.code, code) << ended.err;
  for (const std::string& word : words) EXPECT_NE(ended.err.find(word), std::string::npos) << ended.err;
}

TEST(RefusedRun, AMetricThatTheModelLacks) {
  const TrainCase gpt(kGptJob), tabular(kTabularJob);
  expect_says(gpt.train("run", {"train.eval.metric=auc"}), 2, {"train.eval.metric", "auc", "perplexity"});
  expect_says(tabular.train("run", {"train.eval.metric=perplexity"}), 2, {"train.eval.metric", "auc"});
  expect_says(gpt.train("run", {"train.early_stop.metric=f1", "train.early_stop.patience=1"}), 2,
              {"train.early_stop.metric", "f1"});
  EXPECT_FALSE(std::filesystem::exists(gpt.output("run"))) << "nothing may be made before the job is checked";
}

TEST(RefusedRun, Tf32OnTheProcessor) {
  const TrainCase job(kGptJob);
  expect_says(job.train("run", {"train.precision=tf32", "device=cpu"}), 2,
              {"train.precision tf32 is arithmetic of NVIDIA GPUs", "write precision: fp32, or bf16"});
  EXPECT_FALSE(std::filesystem::exists(job.output("run")));
}

TEST(RefusedRun, EvaluationWithoutRecords) {
  const TrainCase job(kGptJob);
  expect_says(job.train("run", {"data.eval.samples="}), 2,
              {"job.yaml:11: train.eval.every", "data.hold_out: 0.1", "data.eval"});
  expect_says(job.train("run", {"data.eval.samples=", "train.eval.every=", "train.early_stop.patience=2"}), 2,
              {"train.early_stop.patience", "data.hold_out: 0.1"});
  EXPECT_FALSE(std::filesystem::exists(job.output("run")));
  EXPECT_FALSE(job.trained("run", {"data.eval.samples=", "train.eval.every="}).final_eval);
}

TEST(RefusedRun, MemoryThatDoesNotHoldWhatTheOrderMixes) {
  const TrainCase job(kTabularJob);
  const Ended refused = job.train("run", {"data.train.samples=100000", "data.memory=4MiB"});
  expect_says(refused, 2, {"data.memory 4 MiB does not hold", "write data.memory: "});
  EXPECT_FALSE(std::filesystem::exists(job.output("run")));
  // With what it asks for it runs.
  const size_t at = refused.err.find("write data.memory: ") + std::string_view("write data.memory: ").size();
  const std::string memory = refused.err.substr(at, refused.err.find("MiB", at) + 3 - at);
  job.trained("run", {"data.train.samples=100000", "data.memory=" + memory});
}

TEST(RefusedRun, AnOutputThatCannotBeWritten) {
  const TrainCase job(kGptJob);
  job.folder().write("file", "not a folder");
  expect_says(job.train("file/run"), 2, {"file/run"});
  expect_says(job.train("file"), 2, {"file"});
  expect_says(job.train("run", {"output=/proc/run"}), 2, {"/proc/run"});
}

TEST(RefusedRun, AFullDiskEndsTheRunAndLosesNothing) {
  const TrainCase job(kGptJob);
  job.trained("whole");
  const auto expect_full = [&](const std::vector<std::string>& settings,
                               const std::vector<std::string>& words) {
    expect_says(LockstepProcess(job.arguments("run", settings), job.log("run"), {.file_limit = 8000}).wait(),
                1, words);
    const RunSummary summary = job.summary("run");
    EXPECT_EQ(summary.status, "failed");
    EXPECT_EQ(summary.exit_code, 1);
    for (const std::string& word : words) EXPECT_NE(summary.error.find(word), std::string::npos);
    for (const std::string& name : job.names("run")) EXPECT_EQ(name.find(".tmp-"), std::string::npos) << name;
  };
  expect_full({}, {"checkpoint 2 was not saved", "model.safetensors"});
  expect_full({"checkpoint.every=", "train.eval.every="}, {"cannot write"});
  EXPECT_EQ(job.trained("run").weights_sha256, job.summary("whole").weights_sha256);
  expect_same_steps(job.metrics("run"), job.metrics("whole"));
}

}  // namespace
}  // namespace lockstep
