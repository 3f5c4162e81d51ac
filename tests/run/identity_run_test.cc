// What changes the bits of a run, and what does not: changes of the second kind change neither the weights
// nor the identity; those of the first are refused by a run that has begun, with the names of the fields.
#include <gtest/gtest.h>

#include <sstream>

#include "run/train_case.h"

namespace lockstep {
namespace {

using Names = std::vector<std::string>;

// The fields of "train.seed: checkpoint 7, job 8" lines.
Names fields_in(const std::string& message) {
  Names names;
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);)
    if (const size_t at = line.find(": checkpoint "); at != std::string::npos)
      names.push_back(line.substr(0, at));
  return names;
}

TEST(RunIdentity, HowItRunsChangesNoBit) {
  for (const char* text : {kGptJob, kTabularJob}) {
    const TrainCase job(text);
    const RunSummary expected = job.trained("plain", {"train.steps=10"});
    const std::vector<Names> ways = {{"strategy.threads=1"},
                                     {"strategy.threads=3"},
                                     {"train.recompute=fused"},
                                     {"train.recompute=cheap"},
                                     {"train.recompute=block", "strategy.threads=2"},
                                     {"train.eval.every=1", "checkpoint.every=1", "checkpoint.keep=0"},
                                     {"train.eval.every=", "checkpoint.every=", "name=other"},
                                     {"train.eval.metric=accuracy", "train.early_stop.patience=100"},
                                     {"data.shuffle=true", "train.optimizer.name=adamw"}};
    for (size_t i = 0; i < ways.size(); ++i) {
      Names settings = ways[i];
      settings.emplace_back("train.steps=10");
      const RunSummary found = job.trained("way" + std::to_string(i), settings);
      EXPECT_EQ(found.weights_sha256, expected.weights_sha256) << ways[i][0];
      EXPECT_EQ(found.identity_sha256, expected.identity_sha256) << ways[i][0];
    }
  }
}

TEST(RunIdentity, ItGoesOnInAnotherWay) {
  const TrainCase job(kGptJob);
  const Names base = {"train.lr.decay=constant"};
  const auto with = [&](Names settings) {
    settings.insert(settings.end(), base.begin(), base.end());
    return settings;
  };
  job.trained("run", with({"train.steps=6", "strategy.threads=1"}));
  EXPECT_EQ(job.trained("run", with({"train.steps=20", "strategy.threads=2", "train.recompute=block",
                                     "checkpoint.every=5", "train.eval.every=3"}))
                .weights_sha256,
            job.trained("whole", with({"train.steps=20"})).weights_sha256);
}

struct Change {
  Names settings, fields;
};

const std::vector<Change> kChanges = {
    {{"train.seed=6"}, {"train.seed"}},
    {{"data.seed=4"}, {"data.seed", "data.train"}},
    {{"data.train.samples=99"}, {"data.train"}},
    {{"data.shuffle=false"}, {"data.shuffle"}},
    {{"train.microbatch=4"}, {"train.microbatch"}},
    {{"train.global_batch=16"}, {"train.global_batch"}},
    {{"strategy.leaves=1"}, {"strategy.leaves"}},
    {{"train.lr.base=2e-2"}, {"train.lr.peak"}},
    {{"train.lr.warmup=6"}, {"train.lr.warmup_steps", "train.lr.falls_from_step"}},
    {{"train.lr.min=1e-5"}, {"train.lr.min"}},
    {{"train.lr.decay=linear"}, {"train.lr.decay"}},
    {{"train.steps=31"}, {"train.lr.falls_to_step"}},
    {{"train.optimizer.betas=[0.9, 0.99]"}, {"train.optimizer.betas"}},
    {{"train.optimizer.eps=1e-7"}, {"train.optimizer.eps"}},
    {{"train.optimizer.weight_decay=0.2"}, {"train.optimizer.weight_decay"}},
    {{"train.optimizer.name=adam", "train.optimizer.weight_decay=0.01"}, {"train.optimizer.name"}},
    {{"train.clip_norm=2"}, {"train.clip_norm"}},
    {{"train.ema=0.5"}, {"train.ema"}},
    {{"train.precision=bf16"}, {"train.precision"}},
    {{"train.precision=bf16_pure"}, {"train.precision", "train.moments"}},
    {{"train.guard.spike_factor=5"}, {"train.guard.spike_factor"}},
    {{"train.guard.non_finite=rewind"}, {"train.guard.non_finite", "checkpoint.every"}},
    {{"model.dropout=0.2"}, {"model.dropout"}},
    {{"model.layers=2"}, {"model.layers"}},
    {{"strategy.reduce.order=fast"}, {"strategy.reduce.order", "strategy.workers"}},
};

TEST(RunIdentity, AChangeThatMattersIsRefusedByName) {
  const TrainCase job(kGptJob);
  const Names base = {"strategy.leaves=2"};
  job.trained("run", base);
  const std::string metrics = job.text("run", "metrics.jsonl"), summary = job.text("run", "summary.json");
  const std::string effective = job.text("run", "job.yaml");
  for (const auto& [settings, fields] : kChanges) {
    Names all = base;
    all.insert(all.end(), settings.begin(), settings.end());
    const Ended ended = job.train("run", all);
    EXPECT_EQ(ended.code, 2) << settings[0];
    EXPECT_EQ(fields_in(ended.err), fields) << ended.err;
    EXPECT_NE(ended.err.find("--fresh"), std::string::npos) << ended.err;
  }
  EXPECT_EQ(job.text("run", "metrics.jsonl"), metrics);
  EXPECT_EQ(job.text("run", "summary.json"), summary);
  EXPECT_EQ(job.text("run", "job.yaml"), effective);
}

// The fast order sums what workers have by a tree over them: the bits depend on how many they are.
TEST(RunIdentity, WorkersBelongToItInTheFastOrder) {
  const TrainCase job(kGptJob);
  const auto with = [](const std::string& order, int workers) {
    return Names{"strategy.leaves=4", "train.steps=4", "train.lr.warmup=1", "strategy.reduce.order=" + order,
                 "strategy.workers=" + std::to_string(workers)};
  };
  EXPECT_NE(job.trained("fast-2", with("fast", 2)).identity_sha256,
            job.trained("fast-1", with("fast", 1)).identity_sha256);
  const Ended other = job.train("fast-2", with("fast", 1));
  EXPECT_EQ(other.code, 2) << other.err;
  EXPECT_EQ(fields_in(other.err), Names{"strategy.workers"}) << other.err;
  EXPECT_EQ(job.trained("tree-2", with("canonical", 2)).identity_sha256,
            job.trained("tree-1", with("canonical", 1)).identity_sha256);
}

// What the processor has and the job does not use is no part of it; what the job uses is, as it is measured.
TEST(RunIdentity, HoldsTheArithmeticThatTheJobUses) {
  const TrainCase job(kGptJob);
  const auto trained = [&](const std::string& isa, const std::string& precision) {
    const std::string run = isa + "-" + precision;
    const Ended ended =
        LockstepProcess(
            job.arguments(run, {"train.steps=3", "train.lr.warmup=1", "train.precision=" + precision}),
            job.log(run), {.environment = {"LOCKSTEP_ISA=" + isa}})
            .wait();
    EXPECT_EQ(ended.code, 0) << ended.err;
    return job.summary(run);
  };
  const RunSummary narrow = trained("avx2", "fp32");
  if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "the processor has one class only";
  const RunSummary wide = trained("avx512", "fp32");
  EXPECT_NE(wide.identity_sha256, narrow.identity_sha256);
  // The same processor without an extension that fp32 never uses.
  const RunSummary plain = trained("avx512_fp32", "fp32");
  EXPECT_EQ(plain.weights_sha256, wide.weights_sha256);
  EXPECT_EQ(plain.identity_sha256, wide.identity_sha256);
  if (!__builtin_cpu_supports("avx512bf16")) GTEST_SKIP() << "the processor has no products of bf16";
  const RunSummary own = trained("avx512", "bf16"), converted = trained("avx512_fp32", "bf16");
  EXPECT_NE(own.identity_sha256, converted.identity_sha256);
}

TEST(RunIdentity, FreshStartsOver) {
  const TrainCase job(kGptJob);
  const RunSummary old = job.trained("run");
  const Names change = {"train.seed=6", "train.steps=20"};
  const RunSummary fresh = job.trained("run", change, {"--fresh"});
  EXPECT_NE(fresh.identity_sha256, old.identity_sha256);
  EXPECT_EQ(fresh.restarts, 0);
  EXPECT_EQ(fresh.weights_sha256, job.trained("whole", change).weights_sha256);
  expect_same_steps(job.metrics("run"), job.metrics("whole"));
  EXPECT_EQ(job.names("run"), job.names("whole"));
}

// A default that is written out is the same job.
TEST(RunIdentity, WritingADefaultChangesNothing) {
  const TrainCase job(kGptJob);
  job.trained("run");
  const Ended ended = job.train("run", {"train.optimizer.name=adamw", "train.optimizer.eps=1e-8",
                                        "train.guard.max_skips=3", "strategy.leaves=4"});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

}  // namespace
}  // namespace lockstep
