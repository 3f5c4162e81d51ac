#include "train/step/train_memory.h"

#include <gtest/gtest.h>

#include "model/gpt.h"
#include "model/resnet.h"
#include "model/stored_params.h"
#include "model/tabular.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

std::pair<int64_t, int64_t> planned_and_taken(const Model& model, const TrainOptions& options) {
  const auto backend = make_cpu_backend(2);
  const TrainPlans plans = plan_training(model, *backend, options);
  TrainStep train(model, *backend, options);
  train.run(1e-3, [&](int64_t m) { set_synthetic_inputs(train, model, 3, m); });
  return {train_memory(plans, options).bytes(), train.planned_bytes()};
}

TEST(TrainMemory, IsWhatAStepTakes) {
  for (const Model& model :
       {build_gpt({.layers = 2, .dim = 32, .heads = 2, .vocab = 61, .batch = 2, .seq = 9}),
        build_resnet({.depth = 18, .width = 8, .image = 32, .classes = 3, .batch = 2})})
    for (const int64_t leaves : {1, 2, 4}) {
      TrainOptions options;
      options.microbatches = 4;
      options.leaves = leaves;
      options.ema = 0.9;
      const auto [planned, taken] = planned_and_taken(model, options);
      EXPECT_NEAR(static_cast<double>(planned), static_cast<double>(taken), 64) << model.graph.name();
    }
}

TEST(TrainMemory, OfParametersInBf16IsWhatAStepTakes) {
  const Model model =
      stored_in(DType::kBF16, build_resnet({.depth = 18, .width = 8, .image = 32, .classes = 3, .batch = 2}));
  for (const DType moments : {DType::kF32, DType::kBF16}) {
    TrainOptions options;
    options.microbatches = 4;
    options.leaves = 2;
    options.ema = 0.9;
    options.passes.compute = DType::kBF16;
    options.optimizer.moments = moments;
    const auto [planned, taken] = planned_and_taken(model, options);
    EXPECT_NEAR(static_cast<double>(planned), static_cast<double>(taken), 64);
  }
}

// Per parameter: 2 bytes and not 4, 2 of gradients and not 4, 8 or 4 of moments.
TEST(TrainMemory, Bf16IsHalf) {
  const auto backend = make_null_backend();
  const Model model = build_gpt({.layers = 2, .dim = 32, .heads = 2, .vocab = 61, .batch = 2, .seq = 9});
  TrainOptions options;
  const TrainMemory whole = train_memory(plan_training(model, *backend, options), options);
  const Model stored = stored_in(DType::kBF16, model);
  const TrainMemory half = train_memory(plan_training(stored, *backend, options), options);
  EXPECT_EQ(whole.parameters, 2 * half.parameters);
  EXPECT_EQ(whole.gradients, 2 * half.gradients);
  EXPECT_EQ(whole.state, half.state);
  options.optimizer.moments = DType::kBF16;
  EXPECT_EQ(whole.state, 2 * train_memory(plan_training(stored, *backend, options), options).state);
}

TEST(TrainMemory, WorkersThatShareTheLeavesHoldFewerSums) {
  const auto backend = make_null_backend();
  const Model model = build_gpt({.layers = 2, .dim = 32, .heads = 2, .vocab = 61, .batch = 2, .seq = 9});
  TrainOptions options;
  options.microbatches = options.leaves = 4;
  const int64_t alone = train_memory(plan_training(model, *backend, options), options).gradients;
  options.workers = 4;
  EXPECT_EQ(alone, 3 * train_memory(plan_training(model, *backend, options), options).gradients);
}

TEST(TrainMemory, WorkersOfAHostHoldTheStateOnce) {
  const auto backend = make_null_backend();
  const Model model = build_gpt({.layers = 2, .dim = 32, .heads = 2, .vocab = 61, .batch = 2, .seq = 9});
  TrainOptions options;
  options.microbatches = options.leaves = options.workers = 4;
  const auto planned = [&] { return train_memory(plan_training(model, *backend, options), options); };
  const TrainMemory apart = planned();
  options.host = HostPlace{1, 4};
  const TrainMemory together = planned();
  EXPECT_EQ(apart.parameters, 4 * together.parameters);
  EXPECT_EQ(apart.state, 4 * together.state);
  EXPECT_EQ(apart.gradients, together.gradients);
  options.optimizer.name = "lamb";  // whose update of an element depends on others
  EXPECT_EQ(planned().parameters, apart.parameters);
}

TEST(TrainMemory, RowListsOfManyMicrobatchesAreBounded) {
  const Model model = build_tabular({2, 400, 8, 3, {9}, {7}, 6});
  for (const int64_t microbatches : {1, 8}) {
    TrainOptions options;
    options.microbatches = microbatches;
    options.leaves = microbatches / 2 + microbatches % 2;
    const auto [planned, taken] = planned_and_taken(model, options);
    EXPECT_GE(planned + 64, taken);
    EXPECT_LE(static_cast<double>(planned), 1.05 * static_cast<double>(taken));
  }
}

TEST(TrainMemory, TheTableNamesEveryCategory) {
  const auto backend = make_null_backend();
  const Model model = build_gpt({.layers = 2, .dim = 32, .heads = 2, .vocab = 61, .batch = 2, .seq = 9});
  const TrainPlans plans = plan_training(model, *backend, {});
  const std::string table = memory_table(plans, train_memory(plans, {}), {1 << 20, 1 << 20, 1 << 20});
  for (const char* name :
       {"parameters", "optimizer state", "gradients", "inputs", "arena", "kernels", "evaluation          ",
        "checkpoints         ", "program             ", "planned peak", "lower bound", "saved activations"})
    EXPECT_NE(table.find(name), std::string::npos) << name << "\n" << table;
}

}  // namespace
}  // namespace lockstep
