#include "prepare/layouts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "job/parse.h"

namespace lockstep {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

JobSpec job_with(const std::vector<std::string>& overrides) {
  return parse_job(
      "model: {family: gpt, layers: 4, dim: 128, heads: 4, vocab: 512, seq: 64}\n"
      "data: {train: {format: synthetic, samples: 64}}\n"
      "train: {steps: 2, global_batch: 16, microbatch: 2, lr: {base: 1e-3}}\n",
      "job.yaml", overrides);
}

std::vector<PlannedLayout> layouts_of(const DeviceSet& devices,
                                      const std::vector<std::string>& overrides = {}) {
  return plan_layouts(job_with(overrides), {}, devices);
}

const PlannedLayout& stage(const std::vector<PlannedLayout>& layouts, int64_t zero) {
  return *std::find_if(layouts.begin(), layouts.end(), [&](const PlannedLayout& one) {
    return one.layout.zero == zero && one.layout.pipeline == 1 && one.layout.tensor == 1;
  });
}

TEST(Layouts, WhatFitsEasilyIsNotSplitAndRecomputesNothing) {
  const auto layouts = layouts_of({4, 1024 * kMiB});
  const Layout& first = layouts.at(0).layout;
  EXPECT_TRUE(layouts[0].fits);
  EXPECT_EQ(std::tuple(first.data, first.pipeline, first.tensor, first.zero),
            std::tuple(int64_t{4}, int64_t{1}, int64_t{1}, int64_t{0}));
  EXPECT_EQ(first.recompute, Recompute::kNone);
  EXPECT_EQ(settings_of(first), std::vector<std::string>{"strategy.workers=4"});
}

// Of the workers that are looked at; planned by itself, with nothing that other layouts made.
int64_t fullest_of(const Layout& layout, const std::string& leaves) {
  std::vector<std::string> settings = settings_of(layout);
  settings.push_back(leaves);
  const JobSpec spec = job_with(settings);
  const Model model = build_job_model(spec, {});
  const auto backend = make_null_backend();
  int64_t fullest = 0;  // owners have unequally much by a block
  for (const int64_t stage : {int64_t{0}, layout.pipeline - 1}) {
    const auto rank = static_cast<int>((stage + 1) * layout.data * layout.tensor - 1);
    const JobPlan plan = plan_job(spec, resolve(spec), model, {}, *backend, {}, rank);
    fullest = std::max(fullest, plan.memory.bytes() + plan.beside.evaluation);
  }
  return fullest;
}

TEST(Layouts, EveryPlannedLayoutIsThePlanOfItsJob) {
  // With room for everything, for some, and for what is moved to the host; leaves of one microbatch and of
  // two.
  for (const int64_t room : {1024, 14, 8})
    for (const char* const leaves : {"strategy.leaves=8", "strategy.leaves=4"}) {
      int64_t compared = 0;
      for (const PlannedLayout& one : layouts_of({4, room * kMiB}, {leaves})) {
        if (!one.planned || !one.refused.empty()) continue;
        EXPECT_EQ(one.bytes, fullest_of(one.layout, leaves))
            << fmt::format("{} {}", fmt::join(settings_of(one.layout), " "), leaves);
        EXPECT_EQ(one.bytes, one.parameters + one.gradients + one.state + one.activations);
        ++compared;
      }
      EXPECT_GT(compared, 5) << room << " MiB";
    }
}

// A pipeline that evaluates holds two blocks for it, on the first device alone.
TEST(Layouts, AnEvaluationIsOfTheFirstDevice) {
  const auto pipeline = [](const std::vector<PlannedLayout>& layouts) {
    return *std::find_if(layouts.begin(), layouts.end(),
                         [](const PlannedLayout& one) { return one.layout.pipeline == 4; });
  };
  const DeviceSet roomy{4, 1024 * kMiB};
  const PlannedLayout without = pipeline(layouts_of(roomy));
  const PlannedLayout with = pipeline(layouts_of(roomy, {"data.hold_out=0.1"}));
  EXPECT_GT(with.bytes, without.bytes);
  EXPECT_LT(with.bytes, without.bytes + 4 * kMiB);
}

TEST(Layouts, LessMemoryAsksForMoreSplitting) {
  const auto roomy = layouts_of({4, 1024 * kMiB});
  const PlannedLayout whole = stage(roomy, 0);
  const PlannedLayout split = stage(roomy, 1);
  ASSERT_LT(split.bytes, whole.bytes);
  const auto tight = layouts_of({4, split.bytes});
  EXPECT_TRUE(stage(tight, 1).fits);
  EXPECT_EQ(stage(tight, 1).layout.recompute, Recompute::kNone);
  const Layout& unsplit = stage(tight, 0).layout;
  EXPECT_TRUE(!stage(tight, 0).fits || unsplit.recompute != Recompute::kNone || unsplit.offload);
}

TEST(Layouts, StateGoesToTheHostWhereNothingElseFits) {
  const std::vector<std::string> one_block = {"model.layers=1", "train.microbatch=1"};
  const auto whole = stage(layouts_of({1, 1024 * kMiB}, one_block), 0);
  ASSERT_GT(whole.state, whole.parameters);
  const DeviceSet tight{1, whole.bytes - whole.state + kMiB / 4};
  const PlannedLayout offloaded = stage(layouts_of(tight, one_block), 0);
  EXPECT_TRUE(offloaded.fits && offloaded.layout.offload);
  EXPECT_EQ(offloaded.state, 0);
  EXPECT_EQ(settings_of(offloaded.layout).at(1), "strategy.offload=state");
  std::vector<std::string> on_cpu = one_block;
  on_cpu.emplace_back("device=cpu");
  EXPECT_FALSE(stage(layouts_of(tight, on_cpu), 0).fits);
}

TEST(Layouts, StateThatIsTooMuchIsNotPlanned) {
  const auto layouts = layouts_of({2, 8 * kMiB});
  EXPECT_FALSE(stage(layouts, 0).planned);
  EXPECT_GT(stage(layouts, 0).bytes, 8 * kMiB);
  const std::string table = layout_table(layouts, {2, 8 * kMiB});
  EXPECT_NE(table.find("its state alone is too much"), std::string::npos) << table;
  EXPECT_NE(layout_table(layouts_of({2, kMiB}), {2, kMiB}).find("none fits: "), std::string::npos);
}

}  // namespace
}  // namespace lockstep
