#include "prepare/job_plan.h"

#include <gtest/gtest.h>

#include "job/parse.h"
#include "prepare/job_options.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

// Eight blocks of 0.75 MiB.
JobPlan plan_of(const Settings& overrides, int rank = 0) {
  const JobSpec spec = parse_job(
      "model: {family: gpt, layers: 8, dim: 128, heads: 4, vocab: 256, seq: 8}\n"
      "data: {train: {format: synthetic, samples: 64}, hold_out: 0.1}\n"
      "train: {steps: 2, global_batch: 8, microbatch: 1, lr: {base: 1e-3}}\n"
      "strategy: {leaves: 8, reduce: {bucket: 64KiB}}\n",
      "job.yaml", overrides);
  const auto backend = make_null_backend();
  return plan_job(spec, resolve(spec), build_job_model(spec, {}), {}, *backend, {}, rank);
}

int64_t evaluation(const Settings& overrides, int rank = 0) {
  return plan_of(overrides, rank).beside.evaluation;
}

const std::vector<Settings> kSplit = {
    {"strategy.workers=4", "strategy.pipeline=4"},
    {"strategy.workers=4", "strategy.pipeline=2", "strategy.tensor=2", "train.ema=0.9"},
    {"strategy.tensor_leaves=4"},
    {"strategy.workers=4", "strategy.zero=1", "train.ema=0.9"},
    {"strategy.workers=4", "strategy.zero=3"},
    {"strategy.workers=4", "strategy.pipeline=2", "strategy.zero=3", "train.ema=0.9"},
};

// Beside what an evaluation of a whole model takes there are two blocks at most, and half of it again for
// several batches at once.
TEST(JobPlan, AnEvaluationHoldsTwoUnits) {
  constexpr int64_t kBlock = 4 * 12 * 128 * 128;
  const int64_t whole = evaluation({});
  for (const Settings& settings : kSplit) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(settings, " ")));
    EXPECT_GT(evaluation(settings), kBlock);
    EXPECT_LT(evaluation(settings), 1.5 * (whole + 2.2 * kBlock));  // padded
  }
}

TEST(JobPlan, OnlyTheFirstWorkerEvaluates) {
  for (const Settings& settings : kSplit)
    for (int rank = 1; rank < 4 && settings[0] == "strategy.workers=4"; ++rank)
      EXPECT_EQ(evaluation(settings, rank), 0) << rank << " " << settings[1];
}

// Whose casts to what is computed in stand before the first block.
TEST(JobPlan, WhatIsStoredInBf16HasAsManyUnits) {
  const Settings split = {"strategy.workers=4", "strategy.zero=3"};
  const size_t units = plan_of(split).train.units.size();
  EXPECT_GE(units, 8u);
  Settings stored = split;
  stored.emplace_back("train.precision=bf16_pure");
  EXPECT_EQ(plan_of(stored).train.units.size(), units);
}

}  // namespace
}  // namespace lockstep
