// Batch arithmetic, lengths and the peak learning rate.
#include "job/resolve.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "job/parse.h"

namespace lockstep {
namespace {

JobSpec job(std::vector<std::string> overrides = {}) {
  return parse_job(
      "model: {family: gpt}\ndata: {train: {format: synthetic}}\n"
      "train: {steps: 1000, global_batch: 1024, microbatch: 128, lr: {base: 1e-4}}\n",
      "job.yaml", overrides);
}

ResolvedJob resolved(std::vector<std::string> overrides, const JobFacts& facts = {}) {
  return resolve(job(std::move(overrides)), facts);
}

std::string error_of(std::vector<std::string> overrides) {
  try {
    resolved(std::move(overrides));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Resolve, LeavesFollowFromTheModelAndTheMicrobatches) {
  EXPECT_EQ(default_leaves(64, 1'000'000), 16);
  EXPECT_EQ(default_leaves(64, 300'000'000), 8);
  EXPECT_EQ(default_leaves(64, 3'000'000'000), 4);
  EXPECT_EQ(default_leaves(8, 1), 8);
  EXPECT_EQ(default_leaves(12, 1), 4) << "a leaf takes M / V microbatches, so V divides M";
  EXPECT_EQ(default_leaves(7, 1), 1);
  EXPECT_EQ(resolved({}).leaves, 8);
  EXPECT_EQ(resolved({"strategy.leaves=2"}).leaves, 2);
  EXPECT_EQ(error_of({"strategy.leaves=3"}),
            "--set: strategy.leaves 3 does not divide the 8 microbatches of a step (1024 / 128); use 2 or 4");
}

TEST(Resolve, ABatchThatDoesNotDivideNamesTheNearestThatDo) {
  const std::string text =
      "model: {family: gpt}\ndata: {train: {format: synthetic}}\ntrain:\n  steps: 10\n  global_batch: 1024\n"
      "  microbatch: 96\n  lr: {base: 1}\n";
  try {
    resolve(parse_job(text, "job.yaml"));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "job.yaml:6: train.microbatch 96 does not divide global_batch 1024; use 64 or 128");
  }
}

TEST(Resolve, ThePeakFollowsTheBatchByTheRule) {
  const auto peak = [](const char* rule) {
    return resolved({"train.global_batch=256", "train.microbatch=32", "train.lr.base_batch=32",
                     std::string("train.lr.scaling=") + rule})
        .peak_lr;
  };
  EXPECT_DOUBLE_EQ(peak("linear"), 8e-4);
  EXPECT_NEAR(peak("sqrt"), 2.8284271e-4, 1e-11);
  EXPECT_DOUBLE_EQ(peak("none"), 1e-4);
}

TEST(Resolve, LengthsInStepsSharesAndSamples) {
  EXPECT_EQ(resolved({"train.lr.warmup=5%"}).warmup_steps, 50);
  EXPECT_EQ(resolved({"train.lr.warmup=10000 samples"}).warmup_steps, 10);
  EXPECT_EQ(resolved({"train.lr.warmup=7"}).warmup_steps, 7);
  for (int percent = 1; percent <= 100; ++percent)
    EXPECT_EQ(steps_of({StepSpan::Unit::kFraction, percent / 100.0}, 100, 1), percent);
  EXPECT_EQ(resolved({"train.lr.decay=wsd", "train.lr.warmup=5%"}).decay_steps, 100);
  EXPECT_EQ(resolved({"train.lr.decay=cosine", "train.lr.warmup=100"}).decay_steps, 900);
  EXPECT_EQ(resolved({"train.lr.decay=constant"}).decay_steps, std::nullopt);
}

TEST(Resolve, TheWarmupOfCompressionIsThereWhereGradientsAreLeftOut) {
  EXPECT_EQ(resolved({}).compress_warmup_steps, 0);
  EXPECT_EQ(resolved({"strategy.reduce.compress=int8"}).compress_warmup_steps, 0);
  EXPECT_EQ(resolved({"strategy.reduce.compress=topk"}).compress_warmup_steps, 200);
  EXPECT_EQ(resolved({"strategy.reduce.compress=powersgd", "strategy.reduce.warmup=7"}).compress_warmup_steps,
            7);
  EXPECT_EQ(
      error_of({"strategy.reduce.compress=topk", "strategy.reduce.warmup=1001"}),
      "--set: strategy.reduce.warmup is 1001 steps, but the run has 1000; write fewer, for example 20%, "
      "or strategy.reduce.compress none");
}

TEST(Resolve, EpochsBecomeStepsOnceTheSamplesAreKnown) {
  const std::vector<std::string> epochs = {"train.steps=", "train.epochs=3", "train.lr.warmup=10%"};
  EXPECT_EQ(resolved(epochs).steps, std::nullopt);
  const ResolvedJob known = resolved(epochs, {.parameters = 1, .train_samples = 100'000});
  EXPECT_EQ(known.steps, 293);
  EXPECT_EQ(known.warmup_steps, 30);
}

TEST(Resolve, MoreWorkersThanLeavesSaysHowManyThereAre) {
  const std::string error = error_of({"strategy.workers=4", "strategy.leaves=2"});
  EXPECT_TRUE(error.starts_with("--set: 4 workers cannot share the 2 leaves that a step is summed in"))
      << error;
}

std::string eval_error(const std::string& eval, std::vector<std::string> overrides = {}) {
  try {
    resolve(
        parse_job("model: {family: tabular}\n"
                  "data:\n"
                  "  train: {format: csv, files: a.csv, label: fraud, columns: {ignore: [id]}}\n"
                  "  eval: " +
                      eval + "\ntrain: {steps: 10, global_batch: 8, microbatch: 8, lr: {base: 1e-4}}\n",
                  "job.yaml", overrides));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// What data.eval says is done or refused: never passed over.
TEST(Resolve, EvaluationDataIsReadAsTrainingDataIs) {
  EXPECT_EQ(eval_error("{files: b.csv}"), "");
  EXPECT_EQ(eval_error("{files: b.csv, label: fraud}"), "");
  EXPECT_EQ(eval_error("{format: parquet, files: b.parquet}"), "") << "tables of all formats go together";
  EXPECT_EQ(
      eval_error("{files: b.csv, label: is_fraud}"),
      "job.yaml:4: data.eval.label is is_fraud, and data.train.label is fraud; what is evaluated must be "
      "the column that is trained on: give it one name in all files, and remove data.eval.label");
  EXPECT_EQ(eval_error("{format: jsonl, files: b.jsonl, label: label}").find("job.yaml:4: data.eval.label"),
            0U);
  EXPECT_EQ(eval_error("{files: b.csv, columns: {numeric: [amount]}}"),
            "job.yaml:4: data.eval.columns.numeric is not what data.train.columns.numeric says; the model's "
            "inputs are the columns that it is trained on: remove it");
  EXPECT_NE(eval_error("{files: b.csv, columns: {ignore: [name]}}").find("data.eval.columns.ignore"),
            std::string::npos);
  EXPECT_NE(eval_error("{files: b.csv, columns: {fill: 0}}").find("data.eval.columns.fill"),
            std::string::npos);
  EXPECT_NE(eval_error("{format: synthetic, samples: 5}").find("does not go with data.train.format csv"),
            std::string::npos);
  EXPECT_NE(eval_error("{format: text, files: b.txt}").find("use a table"), std::string::npos);
  EXPECT_NE(eval_error("{files: b.csv, transforms: []}").find("unknown key transforms in data.eval"),
            std::string::npos);
}

TEST(Resolve, HoldOutAndEvaluationDataAreTwoAnswersToOneQuestion) {
  EXPECT_NE(eval_error("{files: b.csv}", {"data.hold_out=0.1"}).find("keep one of them"), std::string::npos);
  EXPECT_EQ(eval_error("{files: b.csv}", {"data.hold_out=0.1", "data.eval="}), "");
}

TEST(Resolve, WhatThisVersionCannotRunSaysWhatCan) {
  EXPECT_EQ(error_of({"strategy.zero=1", "train.optimizer.name=lamb"}),
            "--set: strategy.zero 1 splits tensors between workers, and lamb needs norms or means of whole "
            "ones; use adamw, adam, lion or sgd, or strategy.zero 0");
  EXPECT_EQ(
      error_of({"strategy.zero=2", "strategy.reduce.via=none"}),
      "--set: strategy.zero 2 needs what other workers send, and strategy.reduce.via none sends nothing; "
      "use strategy.zero 0 to measure");
  EXPECT_EQ(error_of({"strategy.zero_group=2"}),
            "--set: strategy.zero_group 2 says among how many workers strategy.zero shares out what they "
            "hold, and that is 0; write strategy.zero 1, 2 or 3, or leave the group out");
  EXPECT_EQ(
      error_of({"strategy.zero=2", "strategy.zero_group=2", "strategy.pipeline=2"}),
      "--set: strategy.zero_group 2 is of whole models, and strategy.pipeline 2 times strategy.tensor 1 "
      "has parts of one; leave strategy.zero_group out, or the others");
}

}  // namespace
}  // namespace lockstep
