// Runs whose gradients are compressed: the bits of one worker on every layout that it goes with, checkpoints
// that any layout goes on from, steps that are left out, and refusals that say why.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <set>

#include "run/worker_processes.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

Settings operator+(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// In several buckets. What leaves gradients out begins after two steps.
const Settings kFour = {"strategy.leaves=4", "strategy.threads=1", "train.steps=8",
                        "strategy.reduce.bucket=8KiB"};

Settings workers(int count, const std::string& transport = "auto") {
  return {fmt::format("strategy.workers={}", count), "strategy.transport=" + transport};
}

Settings compressed(const std::string& codec) { return {"strategy.reduce.compress=" + codec}; }

void expect_bits_of_one(const char* text, const std::string& codec, const Settings& more,
                        const std::vector<Settings>& layouts) {
  const TrainCase job(text);
  const Settings settings = kFour + compressed(codec) + more;
  const RunSummary one = job.trained("one", settings);
  for (size_t i = 0; i < layouts.size(); ++i) {
    const std::string run = fmt::format("run-{}", i);
    SCOPED_TRACE(fmt::format("{} {}", codec, fmt::join(layouts[i], " ")));
    const RunSummary found = job.trained(run, settings + layouts[i]);
    EXPECT_EQ(found.weights_sha256, one.weights_sha256);
    EXPECT_EQ(found.identity_sha256, one.identity_sha256);
    expect_same_steps(job.metrics(run), job.metrics("one"));
  }
}

class Compressed : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Codecs, Compressed, ::testing::Values("bf16", "int8", "topk", "powersgd"));

TEST_P(Compressed, AnyNumberOfWorkersGivesTheBitsOfOne) {
  expect_bits_of_one(kGptJob, GetParam(), {}, {workers(2), workers(3, "ucx"), workers(4)});
}

TEST_P(Compressed, TablesAndStatisticsGoAlong) {
  expect_bits_of_one(kTabularJob, GetParam(), {}, {workers(3)});
  expect_bits_of_one(kResnetJob, GetParam(), {"train.microbatch=2"}, {workers(2, "ucx")});
}

TEST_P(Compressed, IsAnotherJob) {
  const TrainCase job(kGptJob);
  const RunSummary exact = job.trained("exact", kFour);
  const RunSummary found = job.trained("compressed", kFour + compressed(GetParam()));
  EXPECT_NE(found.weights_sha256, exact.weights_sha256);
  EXPECT_NE(found.identity_sha256, exact.identity_sha256);
  const Ended ended = job.train("exact", kFour + compressed(GetParam()));
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_NE(ended.err.find("strategy.reduce.compress"), std::string::npos) << ended.err;
}

TEST_P(Compressed, GoesOnInAnyLayout) {
  const TrainCase job(kGptJob);
  const Settings settings =
      kFour + compressed(GetParam()) +
      Settings{"train.lr.decay=constant", "train.lr.warmup=2", "train.ema=0.9", "strategy.reduce.warmup=3"};
  const RunSummary whole = job.trained("whole", settings + Settings{"train.steps=12"});
  int64_t end = 3;
  for (const Settings& how : {workers(2), workers(3, "ucx"), workers(1), workers(4)}) {
    job.trained("parts", settings + how + Settings{fmt::format("train.steps={}", end)});
    end += 3;
  }
  EXPECT_EQ(job.summary("parts").weights_sha256, whole.weights_sha256);
}

TEST_P(Compressed, GoesOnAfterAKill) {
  const TrainCase job(kGptJob);
  const Settings settings = kFour + compressed(GetParam()) + Settings{"train.steps=60", "checkpoint.every=5"};
  const RunSummary whole = job.trained("whole", settings);
  {
    WorkersInTraining run(job, "killed", settings + workers(2));
    run.send(1, SIGKILL);
    run.wait();
  }
  EXPECT_EQ(job.trained("killed", settings + workers(3)).weights_sha256, whole.weights_sha256);
}

// The rate is so high that gradients stop being finite; what a leaf had not sent goes with such a step.
TEST_P(Compressed, StepsAreLeftOutAlike) {
  const TrainCase job(kEncoderJob);
  const Settings settings = kFour + compressed(GetParam()) + Settings{"train.lr.base=1e3",
                                                                      "train.lr.scaling=linear",
                                                                      "train.steps=20",
                                                                      "train.guard.non_finite=skip",
                                                                      "train.guard.max_skips=100",
                                                                      "checkpoint.every=1",
                                                                      "checkpoint.keep=0"};
  const Ended ended = job.train("one", settings);
  const Metrics expected = job.metrics("one");
  ASSERT_GT(std::count_if(expected.steps.begin(), expected.steps.end(),
                          [](const StepRecord& step) { return step.action == kSkipped; }),
            0)
      << ended.err;
  job.train("two", settings + workers(2));
  expect_same_steps(job.metrics("two"), expected);
  // From a checkpoint that was written right after such a step.
  int64_t skipped = 0;
  for (const StepRecord& step : expected.steps)
    if (step.action == kSkipped && skipped == 0) skipped = step.step;
  job.train("two", settings + workers(3), {"--from", fmt::format("checkpoint-{}", skipped)});
  EXPECT_EQ(job.summary("two").weights_sha256, job.summary("one").weights_sha256);
}

class LeavesOut : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Codecs, LeavesOut, ::testing::Values("topk", "powersgd"));

// Whose matrices are not sent whole right after the warm-up either.
const Settings kWide = kFour + Settings{"model.vocab=600", "model.dim=64"};

Settings warmup(int steps) { return {fmt::format("strategy.reduce.warmup={}", steps)}; }

TEST_P(LeavesOut, NothingUntilTheWarmupEnds) {
  const TrainCase job(kGptJob);
  const RunSummary exact = job.trained("exact", kWide);
  const RunSummary all = job.trained("all", kWide + compressed(GetParam()) + warmup(8));
  EXPECT_EQ(all.weights_sha256, exact.weights_sha256);
  EXPECT_NE(all.identity_sha256, exact.identity_sha256);
  const RunSummary some = job.trained("some", kWide + compressed(GetParam()) + warmup(5));
  EXPECT_NE(some.weights_sha256, exact.weights_sha256);
  EXPECT_EQ(some.compression->warmup, 5);
  const Metrics found = job.metrics("some"), wanted = job.metrics("exact");
  ASSERT_EQ(found.steps.size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    SCOPED_TRACE(i + 1);
    EXPECT_EQ(found.steps[i].grad_norm == wanted.steps[i].grad_norm, i < 5);
  }
}

TEST_P(LeavesOut, TheLengthOfTheWarmupIsAnotherJob) {
  const TrainCase job(kGptJob);
  const Settings settings = kWide + compressed(GetParam());
  std::set<std::string> weights, identities;
  for (const int steps : {0, 2, 5}) {
    const RunSummary run = job.trained(fmt::format("warm-{}", steps), settings + warmup(steps));
    weights.insert(run.weights_sha256);
    identities.insert(run.identity_sha256);
  }
  EXPECT_EQ(weights.size(), 3u);
  EXPECT_EQ(identities.size(), 3u);
  const RunSummary share = job.trained("share", settings);
  EXPECT_TRUE(weights.contains(share.weights_sha256));
  EXPECT_TRUE(identities.contains(share.identity_sha256));
}

TEST_P(LeavesOut, GoesOnBeforeAtAndAfterTheEndOfTheWarmup) {
  const TrainCase job(kGptJob);
  const Settings settings = kWide + compressed(GetParam()) + warmup(5) +
                            Settings{"train.steps=10", "checkpoint.every=1", "checkpoint.keep=0"};
  const RunSummary whole = job.trained("whole", settings);
  int count = 1;
  for (const int from : {7, 6, 5, 4}) {
    SCOPED_TRACE(from);
    job.trained("whole", settings + workers(count++), {"--from", fmt::format("checkpoint-{}", from)});
    EXPECT_EQ(job.summary("whole").weights_sha256, whole.weights_sha256);
  }
}

class RoundedAtNodes : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Codecs, RoundedAtNodes, ::testing::Values("bf16", "int8"));

TEST_P(RoundedAtNodes, GoesWithZeroPipelineAndServers) {
  expect_bits_of_one(
      kGptJob, GetParam(), {},
      {workers(2) + Settings{"strategy.zero=1"}, workers(3, "ucx") + Settings{"strategy.zero=1"}});
  expect_bits_of_one(kGptJob, GetParam(), {"model.layers=3", "train.microbatch=1"},
                     {workers(4) + Settings{"strategy.pipeline=2"}});
  expect_bits_of_one(kGptJob, GetParam(), {"model.vocab=600", "model.dim=64", "strategy.reduce.bucket=1MiB"},
                     {workers(3) + Settings{"strategy.reduce.via=server", "strategy.reduce.servers=2"}});
}

TEST(Compression, WhatItDoesNotGoWithIsRefused) {
  const TrainCase job(kGptJob);
  struct Case {
    Settings settings;
    const char* reason;
  };
  for (const Case& one : {
           Case{{"strategy.reduce.compress=int8", "strategy.zero=2", "strategy.workers=2"},
                "strategy.zero 2"},
           Case{{"strategy.reduce.compress=topk", "strategy.zero=1", "strategy.workers=2"},
                "strategy.zero 1"},
           Case{{"strategy.reduce.compress=bf16", "train.precision=bf16_pure"}, "bf16_pure"},
           Case{{"strategy.reduce.compress=bf16", "strategy.reduce.order=fast"}, "order fast"},
           Case{{"strategy.reduce.compress=topk", "strategy.reduce.via=none", "strategy.workers=2"},
                "via none"},
           Case{{"strategy.reduce.compress=int4"}, "int8"},
           Case{{"strategy.reduce.compress=onebit"}, "a sum of signs"},
           Case{{"strategy.reduce.compress=auto", "strategy.zero=1", "strategy.workers=2"}, "trial steps"},
           Case{{"strategy.reduce.compress=topk", "strategy.reduce.topk=0"}, "strategy.reduce.topk"},
           Case{{"strategy.reduce.compress=topk", "strategy.reduce.warmup=9", "train.steps=8"},
                "strategy.reduce.warmup is 9 steps, but the run has 8; write fewer"},
           Case{{"strategy.reduce.compress=powersgd", "strategy.reduce.warmup=-1"}, "strategy.reduce.warmup"},
           Case{{"strategy.reduce.compress=powersgd", "strategy.reduce.warmup=soon"},
                "strategy.reduce.warmup"},
       }) {
    const Ended ended = job.train("refused", one.settings);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_NE(ended.err.find(one.reason), std::string::npos) << ended.err;
  }
}

// Whatever it is; a run that goes on keeps it, also where it would choose otherwise: one worker sends
// nothing.
TEST(Compression, AutoIsTheRunThatNamesItsChoice) {
  const TrainCase job(kGptJob);
  const Settings settings = kFour + Settings{"train.lr.decay=constant", "train.lr.warmup=2"};
  const Settings longer = {"train.steps=12"};
  const RunSummary chosen = job.trained("auto", settings + compressed("auto") + workers(2, "ucx"));
  ASSERT_TRUE(chosen.compression);
  EXPECT_FALSE(chosen.compression->measured.empty());
  EXPECT_FALSE(chosen.compression->reason.empty());
  const Settings named = settings + compressed(chosen.compression->codec);
  const RunSummary by_hand = job.trained("named", named + workers(3));
  EXPECT_EQ(chosen.weights_sha256, by_hand.weights_sha256);
  EXPECT_EQ(chosen.identity_sha256, by_hand.identity_sha256);

  job.trained("int8", settings + compressed("int8") + workers(2));
  const RunSummary kept = job.trained("int8", settings + compressed("auto") + longer);
  EXPECT_EQ(kept.compression->codec, "int8");
  EXPECT_EQ(kept.weights_sha256, job.trained("whole", settings + compressed("int8") + longer).weights_sha256);
}

// What one of two workers sends of M bytes of gradients in a step: M of f32, its part of bf16 and int8, and
// of topk the values, and in half of the steps the indices; of its warm-up M. The first weights travel as
// they are: more steps are compared with fewer.
TEST(Compression, BytesOnTheWireAreAsTheFormulaSays) {
  const TrainCase job(kGptJob);
  const Settings settings =
      kFour + workers(2, "ucx") + Settings{"model.vocab=4000", "model.dim=64", "strategy.reduce.bucket=1MiB"};
  int runs = 0;
  const auto sent = [&](const std::string& codec, int warm = 0) {
    const auto after = [&](int steps) {
      const Settings all =
          settings + compressed(codec) + warmup(warm) + Settings{fmt::format("train.steps={}", steps)};
      return static_cast<double>(job.trained(fmt::format("run-{}", ++runs), all).network_bytes);
    };
    return after(24) - after(8);
  };
  const double exact = sent("none");
  EXPECT_NEAR(sent("bf16") / exact, 1.0 / 2, 0.02);
  EXPECT_NEAR(sent("int8") / exact, 33.0 / 128, 0.02);
  EXPECT_NEAR(sent("topk") / exact, 10.0 / 1024 * 1.25, 0.02);
  double share = 0;  // of steps 9 to 24
  for (int step = 9; step <= 24; ++step) share += 0.5 * 8 / step / 16;
  EXPECT_NEAR(sent("topk", 8) / exact, share * 1.25, 0.02);
  const auto first = [&](const Settings& how) {
    return static_cast<double>(job.trained(fmt::format("run-{}", ++runs), settings + how).network_bytes);
  };
  EXPECT_NEAR(first(compressed("topk") + warmup(8)) / first({}), 1, 0.02);
}

}  // namespace
}  // namespace lockstep
