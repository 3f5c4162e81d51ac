#include "train/pipeline/pipeline_plans.h"

#include <gtest/gtest.h>

#include "model/gpt.h"
#include "model/llama.h"
#include "model/stored_params.h"

namespace lockstep {
namespace {

constexpr int kStages = 3;

PipelinePlans planned(const Model& model, const PassOptions& passes = {}) {
  const auto backend = make_cpu_backend(1);
  const PipelineShape shape{.ranks = kStages, .microbatches = 4};
  PassOptions whole = passes;
  whole.stop_after = kLastBeforeStages;
  const Graph written = run_passes(model.graph, whole);
  whole.accumulate_gradients = true;
  const Graph added = run_passes(model.graph, whole);
  const StageCut cut({&written, &added}, assign_stages(model.graph, kStages), false);
  std::map<int, StageGraphs> graphs;
  const auto scheduled = [&](int stage) -> const StageGraphs& {
    return graphs.emplace(stage, schedule_stage(cut, stage, passes)).first->second;
  };
  return plan_pipeline(cut, scheduled, *backend, passes, shape, 0);
}

// What lies on the line between two blocks: the residual stream, and its gradient. Both addends of the sum
// that ends a block would be twice that.
void expect_the_residual_stream_alone(const PipelinePlans& plans, const Shape& stream, DType dtype) {
  ASSERT_EQ(plans.transfers.size(), 2u * (kStages - 1));
  for (const StageTransfer& transfer : plans.transfers) {
    EXPECT_EQ(transfer.type, (Type{dtype, stream})) << transfer.value;
    EXPECT_EQ(transfer.to, transfer.from + (transfer.backward ? -1 : 1)) << transfer.value;
  }
}

Model small_llama() {
  return build_llama(
      {.layers = 5, .dim = 16, .heads = 2, .kv_heads = 1, .hidden = 24, .vocab = 23, .batch = 2, .seq = 8});
}

TEST(PipelinePlans, StagesSendTheResidualStreamAlone) {
  expect_the_residual_stream_alone(planned(small_llama()), {2, 8, 16}, DType::kF32);
}
TEST(PipelinePlans, StagesSendTheResidualStreamAloneWhereBlocksAreComputedAgain) {
  PassOptions passes;
  passes.recompute = Recompute::kBlock;
  expect_the_residual_stream_alone(planned(small_llama(), passes), {2, 8, 16}, DType::kF32);
}

// Parameters that are widened before they are read: those of a block are where the block is.
TEST(PipelinePlans, StoredParametersAreInTheStageThatReadsThem) {
  const Model model = small_llama();
  const StageMap want = assign_stages(model.graph, kStages);
  const StageMap got = assign_stages(stored_in(DType::kBF16, model).graph, kStages);
  EXPECT_EQ(got.params, want.params);
  EXPECT_EQ(got.copies, want.copies);
  std::set<int> stages;
  for (const auto& [name, stage] : got.params) stages.insert(stage);
  EXPECT_EQ(stages.size(), static_cast<size_t>(kStages));
}
TEST(PipelinePlans, StoredTiedParametersHaveTheirCopies) {
  const Model model = build_gpt({5, 24, 2, 31, 2, 9, 0.1});
  const StageMap want = assign_stages(model.graph, kStages);
  ASSERT_FALSE(want.copies.empty());
  const StageMap got = assign_stages(stored_in(DType::kBF16, model).graph, kStages);
  EXPECT_EQ(got.params, want.params);
  EXPECT_EQ(got.copies, want.copies);
}

}  // namespace
}  // namespace lockstep
