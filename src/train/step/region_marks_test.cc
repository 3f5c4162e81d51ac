// What backward says is final is final: later steps neither read nor write those bytes.
#include <gtest/gtest.h>

#include "model/encoder.h"
#include "model/gpt.h"
#include "model/resnet.h"
#include "train/step/train_plans.h"

namespace lockstep {
namespace {

int64_t first_region_byte(const Plan& plan, size_t from_step) {
  int64_t lowest = plan.memory.region_bytes;
  const auto look = [&](const Location& location, int64_t bytes) {
    if (location.input == Location::kRegion && bytes > 0) lowest = std::min(lowest, location.offset);
  };
  for (size_t n = from_step; n < plan.steps.size(); ++n) {
    if (plan.kernels[n] == nullptr) continue;
    const Node& node = plan.graph.nodes()[n];
    for (const auto* values : {&node.inputs, &node.outputs})
      for (const Value value : *values)
        look(plan.locations[static_cast<size_t>(value.id)], plan.graph.type(value).bytes());
    look(plan.steps[n].workspace, plan.kernels[n]->workspace_bytes());
  }
  for (const PlanCopy& copy : plan.copies)
    look(plan.locations[static_cast<size_t>(copy.to.id)], plan.graph.type(copy.to).bytes());
  return lowest;
}

void expect_final(const Plan& plan) {
  ASSERT_GE(plan.region_marks.size(), 2U) << plan.graph.name();
  int64_t before = 0;
  for (const RegionMark& mark : plan.region_marks) {
    EXPECT_GT(mark.bytes, before);
    before = mark.bytes;
    EXPECT_GE(first_region_byte(plan, static_cast<size_t>(mark.step) + 1), mark.bytes)
        << plan.graph.name() << " step " << mark.step;
  }
}

void expect_marks(const Model& model) {
  const auto backend = make_cpu_backend(1);
  TrainOptions options;
  options.microbatches = 4;
  options.leaves = 2;
  const TrainPlans plans = plan_training(model, *backend, options);
  expect_final(plans.backward());
  expect_final(*plans[Phase::kAccumulate]);
}

TEST(RegionMarks, Gpt) { expect_marks(build_gpt({2, 32, 2, 31, 2, 9, 0.0})); }

TEST(RegionMarks, Encoder) {
  expect_marks(build_encoder({.layers = 2,
                              .dim = 24,
                              .heads = 2,
                              .hidden = 48,
                              .vocab = 31,
                              .classes = 3,
                              .batch = 2,
                              .seq = 9,
                              .dropout = 0.2}));
}

TEST(RegionMarks, ResnetWithStatisticsBehindTheGradients) { expect_marks(build_resnet({18, 4, 32, 5, 2})); }

}  // namespace
}  // namespace lockstep
