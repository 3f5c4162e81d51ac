// Runs whose workers are the stages of a pipeline: the bits of one worker on every mesh and schedule,
// checkpoints that any layout goes on from, and faults that are named with their place in the mesh.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "run/worker_processes.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // which takes memory of its own
#else
constexpr bool kSanitized = false;
#endif

Settings operator+(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Layout {
  int data = 1;
  int pipeline = 2;
  std::string schedule = "1f1b";
  Settings more = {};
};

Settings settings_of(const Layout& how) {
  return Settings{fmt::format("strategy.workers={}", how.data * how.pipeline),
                  fmt::format("strategy.pipeline={}", how.pipeline), "strategy.schedule=" + how.schedule} +
         how.more;
}

// Eight microbatches in four leaves, of a model of five blocks.
const Settings kFive = {"model.layers=5", "train.microbatch=1", "strategy.leaves=4", "strategy.threads=1"};

// The first stage has nobody to make gradients of its inputs for.
void expect_times_of_stages(const RunSummary& found, const Layout& how) {
  ASSERT_EQ(found.stages.size(), static_cast<size_t>(how.pipeline));
  const bool apart = how.schedule == "zero-bubble";
  for (const PipelineStageTimes& stage : found.stages) {
    EXPECT_GT(stage.forward_ms, 0);
    EXPECT_EQ(stage.backward_ms > 0, !apart);
    EXPECT_EQ(stage.input_gradients_ms > 0, apart && &stage != &found.stages.front());
    EXPECT_EQ(stage.weight_gradients_ms > 0, apart);
  }
}

void expect_bits_of_one(const char* text, const Settings& more, const std::vector<Layout>& layouts,
                        int64_t steps = 6) {
  const TrainCase job(text);
  const Settings settings = kFive + more + Settings{fmt::format("train.steps={}", steps)};
  const RunSummary one = job.trained("one", settings);
  for (const Layout& how : layouts) {
    const std::string run = fmt::format("data-{}-pipeline-{}-{}-{}", how.data, how.pipeline, how.schedule,
                                        fmt::join(how.more, "-"));
    SCOPED_TRACE(run);
    const RunSummary found = job.trained(run, settings + settings_of(how));
    EXPECT_EQ(found.weights_sha256, one.weights_sha256);
    EXPECT_EQ(found.identity_sha256, one.identity_sha256);
    EXPECT_EQ(found.mesh, fmt::format("data {} x pipeline {}", how.data, how.pipeline));
    expect_times_of_stages(found, how);
    expect_same_steps(job.metrics(run), job.metrics("one"));
    expect_same_evaluations(job.metrics(run), job.metrics("one"));
    for (const char* file : {"optimizer.safetensors", "average.safetensors"}) {
      const std::string path = fmt::format("checkpoint-{}/{}", steps, file);
      if (!job.has("one", path)) continue;
      EXPECT_TRUE(job.text(run, path) == job.text("one", path)) << path;
    }
  }
}

TEST(PipelineRun, GivesTheBitsOfOne) {
  expect_bits_of_one(kLlamaJob, {}, {{1, 2}, {2, 2, "zero-bubble"}, {1, 4, "gpipe"}, {1, 2, "interleaved"}});
}
TEST(PipelineRun, GivesTheBitsOfOneWithDropoutAndAverages) {
  expect_bits_of_one(kEncoderJob,
                     {"model.dropout=0.1", "train.microbatch=32", "train.ema=0.9", "train.recompute=block",
                      "train.optimizer.name=sgd"},
                     {{1, 3}, {2, 2, "zero-bubble"}});
}
TEST(PipelineRun, GivesTheBitsOfOneWithTiedWeights) {
  expect_bits_of_one(kGptJob, {}, {{2, 2}, {1, 3, "zero-bubble"}, {1, 2, "interleaved"}});
}
TEST(PipelineRun, GivesTheBitsOfOneInPureBf16) {
  expect_bits_of_one(kGptJob, {"train.precision=bf16_pure", "train.ema=0.9"},
                     {{1, 3}, {2, 2, "zero-bubble"}});
}
TEST(PipelineRun, GivesTheBitsOfOneBetweenHosts) {
  expect_bits_of_one(kLlamaJob, {}, {{2, 2, "1f1b", {"strategy.transport=ucx"}}});
}
TEST(PipelineRun, GoesTogetherWithZero) {
  expect_bits_of_one(kLlamaJob, {"train.ema=0.9"},
                     {{2, 2, "1f1b", {"strategy.zero=1"}},
                      {2, 2, "interleaved", {"strategy.zero=2"}},
                      {3, 2, "zero-bubble", {"strategy.zero=2"}},
                      {2, 2, "1f1b", {"strategy.zero=3"}}});
}
// Between hosts: several units of a stage are gathered, and what is tied comes in pieces.
TEST(PipelineRun, ParametersInPiecesGiveTheBitsOfOne) {
  const Settings pieces = {"strategy.zero=3", "strategy.transport=ucx", "strategy.reduce.bucket=4KiB"};
  expect_bits_of_one(kGptJob, {"train.ema=0.9"}, {{2, 2, "1f1b", pieces}, {2, 2, "interleaved", pieces}});
  expect_bits_of_one(kLlamaJob, {}, {{2, 2, "zero-bubble", pieces}});
}

// Buckets so small that an evaluation brings several units, of what other stages hold.
TEST(PipelineRun, EvaluatesWhatOthersHoldUnitByUnit) {
  const Settings small = {"strategy.reduce.bucket=4KiB", "train.eval.every=2"};
  expect_bits_of_one(kGptJob, small, {{1, 3}, {2, 2, "zero-bubble", {"strategy.zero=2"}}});
  expect_bits_of_one(kLlamaJob, small + Settings{"train.precision=bf16_pure", "train.ema=0.9"},
                     {{2, 2, "1f1b", {"strategy.zero=1"}}, {1, 2}});
  // A model that is evaluated on the half of a batch, too.
  expect_bits_of_one(kLlamaJob,
                     small + Settings{"train.microbatch=2", "strategy.leaves=2", "data.eval.samples=7"},
                     {{1, 2}});
}

TEST(PipelineRun, BeginsWithTheWeightsOfAnotherRun) {
  const TrainCase job(kLlamaJob);
  job.trained("base", kFive + Settings{"train.steps=2", "train.lr.warmup=1"});
  const Settings settings = kFive + Settings{"train.steps=3", "train.lr.warmup=1",
                                             "train.init_from.run=" + job.output("base"), "train.ema=0.9"};
  const RunSummary one = job.trained("one", settings);
  for (const Layout& how : {Layout{1, 3}, {2, 2, "1f1b", {"strategy.zero=3", "strategy.transport=ucx"}}})
    EXPECT_EQ(job.trained(fmt::format("stages-{}", how.pipeline), settings + settings_of(how)).weights_sha256,
              one.weights_sha256);
}

class PipelineRunLong : public ::testing::TestWithParam<NamedJob> {};
TEST_P(PipelineRunLong, GivesTheBitsOfOneOnEveryMesh) {
  std::vector<Layout> layouts;
  for (const int data : {1, 2, 3})
    for (const int pipeline : {2, 3, 4})
      for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zero-bubble"})
        if (data * pipeline <= 8 && !(pipeline > 2 && std::string(schedule) == "interleaved"))
          layouts.push_back({data, pipeline, schedule});
  const Settings microbatch = GetParam() == kEncoderJob ? Settings{"train.microbatch=32"} : Settings{};
  for (const char* optimizer : {"adamw", "sgd"})
    expect_bits_of_one(
        GetParam(),
        Settings{fmt::format("train.optimizer.name={}", optimizer), "model.dropout=0.1"} + microbatch,
        layouts, 20);
}
INSTANTIATE_TEST_SUITE_P(Families, PipelineRunLong, ::testing::Values(kGptJob, kLlamaJob, kEncoderJob));

TEST(PipelineRun, GoesOnInAnyLayout) {
  const TrainCase job(kLlamaJob);
  const Settings settings = kFive + Settings{"train.lr.decay=constant", "train.lr.warmup=2", "train.ema=0.9"};
  const RunSummary whole = job.trained("whole", settings + Settings{"train.steps=12"});
  int64_t end = 3;
  for (const Layout& how : {Layout{1, 2}, {2, 1}, {1, 3, "zero-bubble"}, {2, 2}}) {
    const RunSummary part =
        job.trained("parts", settings + settings_of(how) + Settings{fmt::format("train.steps={}", end)});
    EXPECT_EQ(part.steps, end);
    end += 3;
  }
  EXPECT_EQ(job.summary("parts").weights_sha256, whole.weights_sha256);
}

// 76 million parameters in 24 blocks: 1162 MiB of weights, gradients and moments, four times what a worker
// gets, with an evaluation.
TEST(PipelineRunCostLong, TrainsWhatNoWorkerCouldHold) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  const TrainCase job(R"(
name: gpt
model: {family: gpt, layers: 24, dim: 512, heads: 8, vocab: 1024, seq: 16}
data: {train: {format: synthetic, samples: 64}, hold_out: 0.1}
train: {steps: 2, global_batch: 8, microbatch: 1, lr: {base: 1e-3}}
strategy: {leaves: 2, threads: 1}
)");
  const RunSummary one = job.trained("one", {});
  // And two blocks on their way through an evaluation.
  constexpr int64_t kBlock = 4 * 12 * 512 * 512;
  const int64_t limit = 16 * one.parameters / 4 + 2 * kBlock;
  const Settings little = {fmt::format("strategy.memory={}", limit), "strategy.transport=ucx"};
  EXPECT_EQ(job.train("refused", little).code, 3);
  // Only the first worker has nothing to spare for them.
  const Settings fewer = {fmt::format("strategy.memory={}", limit - 2 * kBlock), "strategy.transport=ucx"};
  const Ended refused = job.train("one-refuses", settings_of({2, 4, "1f1b", {"strategy.zero=1"}}) + fewer);
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.err.find("a worker would take"), std::string::npos) << refused.err;
  // At stages 2 and 3 two workers of a stage save less than the sums of rounds and the gathered units take.
  for (const int zero : {1}) {
    SCOPED_TRACE(zero);
    const RunSummary found =
        job.trained(fmt::format("zero-{}", zero),
                    settings_of({2, 4, "1f1b", {fmt::format("strategy.zero={}", zero)}}) + little);
    EXPECT_EQ(found.weights_sha256, one.weights_sha256);
    EXPECT_EQ(found.final_eval->loss, one.final_eval->loss);
    EXPECT_LE(found.planned_memory_bytes, limit);
    // UCX takes some 9 MB of its own, and with what is on its way up to 25.
    EXPECT_NEAR(static_cast<double>(found.peak_memory_bytes) - 17e6,
                static_cast<double>(found.planned_memory_bytes), 8e6 + 0.03 * static_cast<double>(limit));
  }
}

TEST(PipelineRun, AKilledWorkerIsNamedWithItsPlaceInTheMesh) {
  const TrainCase job(kLlamaJob);
  WorkersInTraining run(job, "run",
                        kFive + settings_of({2, 2}) +
                            Settings{"train.steps=10000000", "train.lr.decay=constant", "train.eval.every="});
  run.send(3, SIGKILL);
  const Ended ended = run.wait();
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("worker-3 failed first: killed by SIGKILL"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("rank 3 is data 1, pipeline 1"), std::string::npos) << ended.err;
}

TEST(PipelineRun, WhatCannotBeCutIsRefused) {
  const TrainCase job(kLlamaJob);
  const auto error = [&](const Settings& settings) { return job.train("run", settings).err; };
  EXPECT_NE(error(Settings{"strategy.workers=3", "strategy.pipeline=2"}).find("use 2 or 4 workers"),
            std::string::npos);
  EXPECT_NE(error(kFive + settings_of({1, 7})).find("this one has 5; use at most 5 stages"),
            std::string::npos);
  const Layout uneven{3, 2, "1f1b", {"strategy.zero=3", "strategy.transport=ucx"}};
  EXPECT_NE(
      error(kFive + settings_of(uneven)).find("use strategy.zero 2, or a strategy.leaves that 3 divides"),
      std::string::npos);
  const Layout orders{3, 2, "interleaved", {"strategy.zero=2"}};
  EXPECT_NE(
      error(kFive + settings_of(orders)).find("use strategy.schedule 1f1b, or a strategy.leaves that 3"),
      std::string::npos);
}

}  // namespace
}  // namespace lockstep
