// One hash for every way to lay a job out over workers: data parallelism, ZeRO stages, pipelines and their
// schedules, tensor ranks, composed; each run goes on in its middle in another layout. A sample of them, and
// (Long) all that at most eight workers make.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/train_case.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

struct Layout {
  int data = 1;
  int zero = 0;
  int pipeline = 1;
  std::string schedule = "1f1b";
  int tensor = 1;

  int workers() const { return data * pipeline * tensor; }
  // Workers of one host hold the parameters of stage 3 together: only between hosts these are gathered.
  std::string transport() const { return zero == 3 ? "ucx" : "auto"; }
  std::string text() const {
    return fmt::format("data {} zero {} pipeline {} {} tensor {}", data, zero, pipeline,
                       pipeline > 1 ? schedule : "-", tensor);
  }
  Settings settings() const {
    return {fmt::format("strategy.workers={}", workers()), fmt::format("strategy.zero={}", zero),
            fmt::format("strategy.pipeline={}", pipeline), "strategy.schedule=" + schedule,
            fmt::format("strategy.tensor={}", tensor),     "strategy.transport=" + transport()};
  }
};

Settings operator+(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Blocks for four workers with two stages each; four leaves of two microbatches; clipping, so that a norm
// that were summed in another order would show; units and buckets of a few KiB, so that there are several.
Settings common(const char* job) {
  const bool encoder = job == kEncoderJob;
  return {"model.layers=8",
          "strategy.leaves=4",
          "strategy.threads=1",
          "strategy.reduce.bucket=4KiB",
          encoder ? "train.microbatch=32" : "train.microbatch=1",
          "train.clip_norm=0.5",
          "train.lr.decay=constant",
          "train.lr.warmup=2",
          "train.eval.every=",
          job == kLlamaJob ? "model.tied=false" : "model.dropout=0.1"};
}

// Matrices in four leaves, which are part of what a run is, on any number of tensor ranks.
Settings four_leaves(const char* job) {
  const Settings heads = {"strategy.tensor_leaves=4", "model.dim=32", "model.heads=8"};
  return job == kLlamaJob ? heads + Settings{"model.kv_heads=4", "model.hidden=48"} : heads;
}

// Half of the steps in each layout, the others in the one after it.
void expect_one_hash(const char* text, const std::vector<Layout>& layouts, int64_t steps,
                     const Settings& more = {}) {
  const TrainCase job(text);
  const auto until = [&](int64_t step) { return more + Settings{fmt::format("train.steps={}", step)}; };
  const RunSummary one = job.trained("one", common(text) + until(steps));
  for (size_t i = 0; i < layouts.size(); ++i) {
    const Layout& first = layouts[i];
    const Layout& then = layouts[(i + 1) % layouts.size()];
    SCOPED_TRACE(first.text() + ", then " + then.text());
    const std::string run = fmt::format("run-{}", i);
    job.trained(run, common(text) + first.settings() + until(steps / 2));
    const RunSummary found = job.trained(run, common(text) + then.settings() + until(steps));
    EXPECT_EQ(found.weights_sha256, one.weights_sha256);
    EXPECT_EQ(found.identity_sha256, one.identity_sha256);
    EXPECT_EQ(found.workers, then.workers());
  }
}

// What docs/splitting.md says is refused: leaves that are not the same number for all.
bool is_refused(const Layout& layout) {
  if (layout.pipeline == 1) return false;
  if (4 % layout.data == 0) return false;
  return layout.zero == 3 || (layout.zero == 2 && layout.schedule == "interleaved");
}

std::vector<Layout> all_layouts(const std::vector<int>& tensor_degrees) {
  std::vector<Layout> all;
  for (const int tensor : tensor_degrees)
    for (int data = 1; data <= 4; ++data)
      for (int zero = 0; zero <= (data > 1 ? 3 : 0); ++zero)
        for (int pipeline = 1; pipeline <= 4; ++pipeline)
          for (const char* schedule : {"1f1b", "gpipe", "interleaved", "zero-bubble"}) {
            const Layout layout{data, zero, pipeline, schedule, tensor};
            if (layout.workers() > 8 || is_refused(layout)) continue;
            if (pipeline == 1 && layout.schedule != "1f1b") continue;  // the same
            all.push_back(layout);
          }
  return all;
}

TEST(LayoutMatrix, ASampleHasOneHash) {
  expect_one_hash(kGptJob, {{2, 2, 2, "1f1b"}, {2, 3, 2, "interleaved"}}, 4);
  expect_one_hash(kLlamaJob, {{2, 3, 2, "zero-bubble"}, {1, 0, 4, "interleaved"}}, 4);
  expect_one_hash(kEncoderJob, {{3, 2, 2, "zero-bubble"}, {2, 3}}, 4);
}
TEST(LayoutMatrix, ASampleInLeavesHasOneHash) {
  expect_one_hash(kGptJob, {{2, 2, 2, "1f1b", 2}, {2, 3, 2, "zero-bubble", 2}, {2, 0, 2, "interleaved", 2}},
                  4, four_leaves(kGptJob));
}

// In parts that run beside each other: each has one of every so many layouts.
constexpr size_t kParts = 4;

class LayoutMatrixLong : public ::testing::TestWithParam<std::tuple<NamedJob, size_t>> {
 protected:
  static std::vector<Layout> part_of(const std::vector<int>& tensor_degrees) {
    const std::vector<Layout> all = all_layouts(tensor_degrees);
    EXPECT_GE(all.size(), 60u);
    std::vector<Layout> part;
    for (size_t i = std::get<1>(GetParam()); i < all.size(); i += kParts) part.push_back(all[i]);
    return part;
  }
};
TEST_P(LayoutMatrixLong, HasOneHash) { expect_one_hash(std::get<0>(GetParam()), part_of({1}), 20); }
TEST_P(LayoutMatrixLong, HasOneHashInLeaves) {
  const char* const job = std::get<0>(GetParam());
  expect_one_hash(job, part_of({1, 2, 4}), 20, four_leaves(job));
}
INSTANTIATE_TEST_SUITE_P(Families, LayoutMatrixLong,
                         ::testing::Combine(::testing::Values(kGptJob, kLlamaJob, kEncoderJob),
                                            ::testing::Range(size_t{0}, kParts)));

}  // namespace
}  // namespace lockstep
