// Runs whose workers own pieces of the state (ZeRO): the bits of one worker, checkpoints that any layout goes
// on from, and what such a run takes and sends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>

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

Settings layout(int workers, int stage, const std::string& transport = "auto") {
  return {fmt::format("strategy.workers={}", workers), fmt::format("strategy.zero={}", stage),
          "strategy.transport=" + transport};
}

struct Layout {
  int workers = 2;
  int stage = 1;
  std::string transport = "auto";
};

const Settings kFour = {"strategy.leaves=4", "strategy.threads=1"};

// The same weights, steps and evaluations, and in the last checkpoint the same optimizer and averages.
void expect_bits_of_one(const char* text, const Settings& more, const std::vector<Layout>& layouts) {
  const TrainCase job(text);
  const Settings settings = more + kFour + Settings{"train.steps=8"};
  const RunSummary one = job.trained("one", settings);
  for (const Layout& how : layouts) {
    const std::string run = fmt::format("{}-workers-zero-{}-{}", how.workers, how.stage, how.transport);
    SCOPED_TRACE(run);
    const RunSummary found = job.trained(run, settings + layout(how.workers, how.stage, how.transport));
    EXPECT_EQ(found.weights_sha256, one.weights_sha256);
    EXPECT_EQ(found.identity_sha256, one.identity_sha256);
    EXPECT_EQ(found.zero, how.stage);
    expect_same_steps(job.metrics(run), job.metrics("one"));
    expect_same_evaluations(job.metrics(run), job.metrics("one"));
    for (const char* file : {"optimizer.safetensors", "average.safetensors"}) {
      const std::string path = std::string("checkpoint-8/") + file;
      if (!job.has("one", path)) continue;
      EXPECT_TRUE(job.text(run, path) == job.text("one", path)) << path;
    }
  }
}

TEST(SplitRun, GiveTheBitsOfOne) {
  expect_bits_of_one(kGptJob, {}, {{2, 1}, {3, 2}, {2, 2, "ucx"}, {3, 1, "ucx"}, {2, 3}});
}
TEST(SplitRun, GiveTheBitsOfOneWithTablesAndAverages) {
  expect_bits_of_one(kTabularJob, {}, {{2, 1, "ucx"}});
}
TEST(SplitRun, GiveTheBitsOfOneWithAverages) {
  expect_bits_of_one(kLlamaJob, {"train.precision=bf16_pure", "train.moments=bf16", "train.ema=0.9"},
                     {{3, 2}, {2, 1, "ucx"}});
}

// Buckets so small that there are several units.
const Settings kSmallBuckets = {"strategy.reduce.bucket=4KiB"};

TEST(SplitRun, ParametersInPiecesGiveTheBitsOfOne) {
  expect_bits_of_one(kGptJob, kSmallBuckets, {{2, 3, "ucx"}, {3, 3, "ucx"}});
  expect_bits_of_one(kEncoderJob, kSmallBuckets + Settings{"train.ema=0.9", "train.clip_norm=0.5"},
                     {{4, 3, "ucx"}});
}
TEST(SplitRun, AveragesInPiecesAreEvaluatedUnitByUnit) {
  expect_bits_of_one(kGptJob, kSmallBuckets + Settings{"train.ema=0.9"}, {{2, 1}, {3, 2, "ucx"}});
}
TEST(SplitRun, ParametersInPiecesGiveTheBitsOfOneInBf16) {
  expect_bits_of_one(kLlamaJob, kSmallBuckets + Settings{"train.precision=bf16"}, {{2, 3, "ucx"}});
  expect_bits_of_one(
      kLlamaJob, kSmallBuckets + Settings{"train.precision=bf16_pure", "train.moments=bf16", "train.ema=0.9"},
      {{3, 3, "ucx"}});
}

class SplitRunLong : public ::testing::TestWithParam<NamedJob> {};
TEST_P(SplitRunLong, GiveTheBitsOfOneOnEveryLayout) {
  const bool dense = GetParam() != kTabularJob && GetParam() != kResnetJob;
  std::vector<Layout> layouts;
  for (const int workers : {2, 3, 4})
    for (const int stage : {1, 2, 3})
      for (const char* transport : {"auto", "ucx"})
        if (stage == 1 || dense) layouts.push_back({workers, stage, transport});
  Settings settings = {"train.ema=0.9"};
  if (GetParam() == kResnetJob) settings.emplace_back("train.microbatch=2");  // four leaves
  for (const char* optimizer : {"adamw", "sgd", "lion"})
    expect_bits_of_one(GetParam(), settings + Settings{fmt::format("train.optimizer.name={}", optimizer)},
                       layouts);
}
INSTANTIATE_TEST_SUITE_P(Families, SplitRunLong,
                         ::testing::Values(kGptJob, kLlamaJob, kEncoderJob, kTabularJob, kResnetJob));

TEST(SplitRun, GoesOnInAnyLayout) {
  const TrainCase job(kGptJob);
  const Settings settings = kFour + Settings{"train.lr.decay=constant", "train.lr.warmup=2", "train.ema=0.9"};
  const RunSummary whole = job.trained("whole", settings + Settings{"train.steps=21"});
  int64_t end = 3;
  for (const Layout& how :
       {Layout{2, 1}, {3, 2, "ucx"}, {1, 0}, {4, 2}, {2, 3, "ucx"}, {2, 0}, {3, 3, "ucx"}}) {
    const RunSummary part = job.trained("parts", settings + layout(how.workers, how.stage, how.transport) +
                                                     Settings{fmt::format("train.steps={}", end)});
    EXPECT_EQ(part.steps, end);
    end += 3;
  }
  EXPECT_EQ(job.summary("parts").weights_sha256, whole.weights_sha256);
}

// Two groups of two workers, and three, each of which holds everything.
TEST(SplitRun, InGroupsGiveTheBitsOfOneAndGoOnAnywhere) {
  const TrainCase job(kGptJob);
  const Settings settings = kFour + kSmallBuckets +
                            Settings{"train.lr.decay=constant", "train.lr.warmup=2", "train.ema=0.9",
                                     "train.microbatch=1", "strategy.leaves=8"};
  const Settings in_twos = {"strategy.zero_group=2"};
  const RunSummary whole = job.trained("whole", settings + Settings{"train.steps=6"});
  for (const auto& how : {Layout{4, 1, "ucx"}, {4, 2}, {4, 3, "ucx"}, {6, 3, "ucx"}}) {
    const std::string run = fmt::format("{}-workers-zero-{}", how.workers, how.stage);
    SCOPED_TRACE(run);
    const RunSummary found = job.trained(
        run, settings + layout(how.workers, how.stage, how.transport) + in_twos + Settings{"train.steps=6"});
    EXPECT_EQ(found.weights_sha256, whole.weights_sha256);
    EXPECT_EQ(found.zero, how.stage);
    EXPECT_EQ(found.zero_group, 2);
    expect_same_steps(job.metrics(run), job.metrics("whole"));
    expect_same_evaluations(job.metrics(run), job.metrics("whole"));
    for (const char* file : {"optimizer.safetensors", "average.safetensors"}) {
      const std::string path = std::string("checkpoint-6/") + file;
      EXPECT_TRUE(job.text(run, path) == job.text("whole", path)) << path;
    }
  }
  int64_t end = 2;
  for (const Settings& how : {layout(4, 3, "ucx") + in_twos, layout(3, 2, "ucx"), layout(4, 2) + in_twos}) {
    job.trained("parts", settings + how + Settings{fmt::format("train.steps={}", end)});
    end += 2;
  }
  EXPECT_EQ(job.summary("parts").weights_sha256, whole.weights_sha256);
}

TEST(SplitRun, GroupsThatDoNotDivideTheWorkersAreRefused) {
  const TrainCase job(kGptJob);
  const Ended ended = job.train("run", kFour + layout(4, 2) + Settings{"strategy.zero_group=3"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("strategy.zero_group 3 does not divide the 4 workers into groups of equal size; "
                           "use 2 or 4"),
            std::string::npos)
      << ended.err;
}

TEST(SplitRun, GoesBackToACheckpoint) {
  const TrainCase job(kEncoderJob);
  const Settings settings =
      kFour + Settings{"train.lr.base=1e3",       "train.lr.scaling=linear", "train.guard.non_finite=rewind",
                       "train.guard.lr_cut=1e-7", "checkpoint.every=2",      "train.ema=0.9"};
  job.train("one", settings);
  const Metrics expected = job.metrics("one");
  const auto rewinds = std::count_if(expected.steps.begin(), expected.steps.end(),
                                     [](const StepRecord& step) { return step.action == kRewound; });
  ASSERT_GT(rewinds, 0);
  for (const int stage : {1, 2, 3}) {
    const std::string run = fmt::format("zero-{}", stage);
    job.train(run, settings + layout(2, stage, stage == 3 ? "ucx" : "auto"));
    expect_same_steps(job.metrics(run), expected);
    EXPECT_EQ(job.summary(run).weights_sha256, job.summary("one").weights_sha256);
  }
}

TEST(SplitRun, AKilledWorkerIsNamed) {
  for (const int stage : {1, 2, 3}) {
    const TrainCase job(kGptJob);
    WorkersInTraining run(
        job, "run",
        kFour + layout(3, stage, stage == 3 ? "ucx" : "auto") +
            Settings{"train.steps=10000000", "train.lr.decay=constant", "train.eval.every="});
    run.send(1, SIGKILL);
    const Ended ended = run.wait();
    EXPECT_EQ(ended.code, 1);
    EXPECT_NE(ended.err.find("worker-1 failed first: killed by SIGKILL"), std::string::npos) << ended.err;
    // Over UCX the end of a connection is all that the others see.
    EXPECT_NE(
        ended.err.find(stage == 3 ? "has died or lost its connection" : "has died; before that, rank 1"),
        std::string::npos)
        << ended.err;
  }
}

TEST(SplitRun, WhatCannotBeSplitIsRefused) {
  const TrainCase job(kResnetJob);
  const Ended ended = job.train("run", kFour + layout(2, 2) + Settings{"train.microbatch=2"});
  EXPECT_NE(ended.code, 0);
  EXPECT_NE(ended.err.find("running statistics of batch norms"), std::string::npos) << ended.err;
}

// 8.6 million parameters: 33 MiB of weights, as much of gradients, twice as much of moments.
const char* const kLarge = R"(
name: gpt
model: {family: gpt, layers: 2, dim: 512, heads: 8, vocab: 4096, seq: 16}
data: {train: {format: synthetic, samples: 64}}
train: {steps: 3, global_batch: 8, microbatch: 2, lr: {base: 1e-3}}
checkpoint: {every: 1}
strategy: {leaves: 4, threads: 1}
)";

// Over UCX workers of a host share no memory, as those of different hosts.
TEST(SplitRunCostLong, TakesWhatIsPlannedAndLessThanWhole) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  const TrainCase job(kLarge);
  std::map<int, RunSummary> found;
  for (const int stage : {0, 1, 2, 3}) {
    found[stage] = job.trained(fmt::format("zero-{}", stage), layout(4, stage, "ucx"));
  }
  const auto planned = [&](int stage) { return static_cast<double>(found[stage].planned_memory_bytes); };
  const auto taken = [&](int stage) { return static_cast<double>(found[stage].peak_memory_bytes); };
  // UCX takes some 9 MiB of its own at any stage.
  for (const int stage : {1, 2, 3}) {
    EXPECT_EQ(found[stage].weights_sha256, found[0].weights_sha256) << "of many buckets";
    EXPECT_NEAR(taken(stage) - taken(0), planned(stage) - planned(0), 0.03 * planned(stage)) << stage;
  }
  const double parameter_bytes = 4.0 * static_cast<double>(found[0].parameters);
  // Of AdamW's two moments three quarters are others'.
  EXPECT_NEAR(planned(0) - planned(1), 2 * 0.75 * parameter_bytes, 0.1 * parameter_bytes);
  // Of one gradient, which on one leaf each is all that is held, too; less what is on its way.
  EXPECT_GT(planned(1) - planned(2), 0.1 * parameter_bytes);
  // Of the parameters three quarters, less two units: of two blocks and a table that is a quarter.
  EXPECT_GT(planned(2) - planned(3), 0.03 * parameter_bytes);
}

// 42.9 million parameters in 24 blocks: 655 MiB of weights, gradients and moments, four times what a worker
// gets, program included.
TEST(SplitRunCostLong, TrainsWhatNoWorkerCouldHold) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  const TrainCase job(R"(
name: gpt
model: {family: gpt, layers: 24, dim: 384, heads: 6, vocab: 1024, seq: 16}
data: {train: {format: synthetic, samples: 64}}
train: {steps: 2, global_batch: 8, microbatch: 1, lr: {base: 1e-3}}
strategy: {leaves: 8, threads: 1}
)");
  const RunSummary one = job.trained("one", {});
  const auto limit = static_cast<int64_t>(16.0 * static_cast<double>(one.parameters) / 4);
  const Settings little = {fmt::format("strategy.memory={}", limit)};
  const Ended refused = job.train("refused", layout(8, 2, "ucx") + little);
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.err.find("--set strategy.zero=3"), std::string::npos) << refused.err;
  const RunSummary found = job.trained("zero-3", layout(8, 3, "ucx") + little);
  EXPECT_EQ(found.weights_sha256, one.weights_sha256);
  EXPECT_LE(found.planned_memory_bytes, limit);
  // UCX takes some 9 MB of its own, and with what is on its way to seven others up to 25.
  EXPECT_NEAR(static_cast<double>(found.peak_memory_bytes) - 17e6,
              static_cast<double>(found.planned_memory_bytes), 8e6 + 0.03 * static_cast<double>(limit));
}

// What worker 0 sends in a step, beside the formulas: (N-1)/N of the gradients once per leaf or step, and of
// the parameters.
TEST(SplitRunCostLong, SendsWhatTheFormulasSay) {
  const TrainCase job(kLarge);
  const auto per_step = [&](int workers, int stage, int leaves, const Settings& more = {}) {
    const auto sent = [&](int steps) {
      const Settings settings =
          layout(workers, stage, "ucx") +
          Settings{fmt::format("train.steps={}", steps), "train.lr.decay=constant", "train.lr.warmup=1",
                   "checkpoint.every=", fmt::format("strategy.leaves={}", leaves)} +
          more;
      const std::string run =
          fmt::format("{}-{}-{}-{}-{}", workers, stage, leaves, steps, fmt::join(more, "-"));
      return static_cast<double>(job.trained(run, settings).network_bytes);
    };
    return (sent(3) - sent(1)) / 2;
  };
  const double bytes = 4.0 * static_cast<double>(job.trained("one", {"train.steps=1"}).parameters);
  EXPECT_NEAR(per_step(2, 1, 4), bytes, 0.02 * bytes);
  EXPECT_NEAR(per_step(4, 1, 4), 1.5 * bytes, 0.03 * bytes);
  EXPECT_NEAR(per_step(4, 2, 4), 1.5 * bytes, 0.03 * bytes);
  // Two rounds of two leaves.
  EXPECT_NEAR(per_step(2, 2, 4), 1.5 * bytes, 0.03 * bytes);
  // Parameters forward and backward, gradients once.
  EXPECT_NEAR(per_step(4, 3, 4), 3 * 0.75 * bytes, 0.03 * bytes);
  // One leaf of two microbatches, each of which gathers.
  EXPECT_NEAR(per_step(2, 3, 2), (1 + 2 * 2) * 0.5 * bytes, 0.03 * bytes);
  // Two rounds of it.
  EXPECT_NEAR(per_step(2, 3, 4), 6 * 0.5 * bytes, 0.03 * bytes);
  // Two groups of two: halves of gradients once within, their sums there and back between them, parameters
  // within alone. Stage 1 sums for everybody.
  const Settings in_twos = {"strategy.zero_group=2"};
  EXPECT_NEAR(per_step(4, 1, 4, in_twos), (2 * 0.75 + 0.5) * bytes, 0.03 * bytes);
  EXPECT_NEAR(per_step(4, 2, 4, in_twos), (0.5 + 0.5 + 0.5) * bytes, 0.03 * bytes);
  EXPECT_NEAR(per_step(4, 3, 4, in_twos), (0.5 + 0.5 + 2 * 0.5) * bytes, 0.03 * bytes);
}

}  // namespace
}  // namespace lockstep
