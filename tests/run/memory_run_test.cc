// The memory of a whole process beside what was planned for it, with checkpoints written and read back.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "run/train_case.h"

namespace lockstep {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // which takes memory of its own
#else
constexpr bool kSanitized = false;
#endif

// 8.6 million parameters, so that a copy of the state (99 MiB) would not be overlooked.
const char* const kJob = R"(
name: gpt
model: {family: gpt, layers: 2, dim: 512, heads: 8, vocab: 4096, seq: 16}
data: {train: {format: synthetic, samples: 64}}
train: {steps: 3, global_batch: 2, microbatch: 2, lr: {base: 1e-3}}
checkpoint: {every: 1}
)";

void expect_within_plan(const RunSummary& run) {
  const auto planned = static_cast<double>(run.planned_memory_bytes);
  EXPECT_LT(static_cast<double>(run.peak_memory_bytes), 1.04 * planned);
  EXPECT_GT(static_cast<double>(run.peak_memory_bytes), 0.90 * planned);
}

TEST(RunMemory, WritingAndReadingCheckpointsStaysWithinThePlan) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  const TrainCase job(kJob);
  expect_within_plan(job.trained("run"));
  const RunSummary resumed = job.trained("run", {"train.steps=5"});
  EXPECT_EQ(resumed.restarts, 1);
  expect_within_plan(resumed);
}

TEST(RunMemory, APageLessThanThePlanIsRefused) {
  const TrainCase job(kJob);
  const int64_t planned = job.trained("run").planned_memory_bytes;
  const auto with = [&](int64_t bytes) { return fmt::format("strategy.memory={}", bytes); };
  const Ended refused = job.train("refused", {with(planned - 4096)});
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.err.find("a worker would take"), std::string::npos) << refused.err;
  EXPECT_FALSE(job.has("refused", "summary.json"));
  EXPECT_EQ(job.train("fits", {with(planned + 4096), "train.steps=1"}).code, 0);
}

}  // namespace
}  // namespace lockstep
