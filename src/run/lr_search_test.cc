#include "run/lr_search.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/test_folder.h"
#include "job/parse.h"

namespace lockstep {
namespace {

constexpr const char* kJob =
    "model: {family: gpt, layers: 1, dim: 16, heads: 2, vocab: 32, seq: 16, dropout: 0.1}\n"
    "data: {train: {format: synthetic, samples: 256}, hold_out: 0.1}\n"
    "train: {steps: 2, global_batch: 16, microbatch: 4, lr: {base: 1e-3, base_batch: 4, scaling: sqrt}}\n";

LrSearch search(std::vector<std::string> overrides) {
  return search_lr(parse_job(kJob, "job.yaml", overrides), {.from = 1e-4, .to = 10, .steps = 40});
}

TEST(LrSearch, TheSameForAnyNumberOfThreads) {
  const LrSearch one = search({"strategy.threads=1"});
  const LrSearch two = search({"strategy.threads=2"});
  ASSERT_EQ(one.range.points().size(), two.range.points().size());
  for (size_t i = 0; i < one.range.points().size(); ++i) {
    EXPECT_EQ(one.range.points()[i].lr, two.range.points()[i].lr);
    EXPECT_EQ(one.range.points()[i].loss, two.range.points()[i].loss) << i;
  }
  ASSERT_TRUE(one.range.advice());
  EXPECT_EQ(one.range.advice()->peak(), two.range.advice()->peak());
}

TEST(LrSearch, APeakBecomesABaseByTheRuleOfTheJob) {
  const LrSearch found = search({});
  EXPECT_DOUBLE_EQ(found.schedule.base_for(2e-3), 1e-3);
  EXPECT_DOUBLE_EQ(search({"train.lr.scaling=linear"}).schedule.base_for(4e-3), 1e-3);
  EXPECT_DOUBLE_EQ(search({"train.lr.scaling=none"}).schedule.base_for(1e-3), 1e-3);
}

TEST(LrSearch, TouchesNothing) {
  const TestFolder folder;
  search({"output=" + folder.path("run"), "checkpoint.dir=" + folder.path("checkpoints")});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace lockstep
