// The model families split over ranks: parts of the batch, hidden units, and both, against one rank.
#include <gtest/gtest.h>

#include "device/late_backend.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "model/resnet.h"
#include "model/tabular.h"
#include "runtime/sharded_training_testing.h"

namespace lockstep::testing {
namespace {

constexpr int kSteps = 2;  // beyond, a rounding that moves a relu of resnet is no longer small
constexpr float kLr = 1e-3F;

// All data inputs are split by samples, which are their first axis.
TrainingCase case_of(Model model) {
  TrainingCase result{std::move(model.graph)};
  for (const auto& [name, bound] : model.integer_inputs) result.integer_inputs.emplace(name, bound);
  for (const GraphInput& input : result.graph.inputs())
    if (input.role == Role::kInput) result.data.emplace(result.graph.name(input.value), Placement::split(0));
  return result;
}

// The first product of every MLP by columns, the second by rows.
TrainingCase split_gpt() {
  const GptSizes sizes{.layers = 2, .dim = 24, .heads = 3, .vocab = 31, .batch = 4, .seq = 8};
  TrainingCase result = case_of(build_gpt(sizes));
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::string name = fmt::format("h.{}.mlp.", layer);
    result.tensor.emplace(name + "c_fc.weight", Placement::split(1));
    result.tensor.emplace(name + "c_fc.bias", Placement::split(0));
    result.tensor.emplace(name + "c_proj.weight", Placement::split(0));
  }
  return result;
}

void expect_trains_alike(const TrainingCase& training, const MeshShape& shape) {
  const Trained whole = train_whole(training, kSteps, kLr);
  const Trained split = train_on_mesh(training, shape, kSteps, kLr);
  for (size_t step = 0; step < whole.losses().size(); ++step)
    EXPECT_NEAR(split.losses().at(step), whole.losses()[step], 1e-5 * whole.losses()[step]) << step;
  for (const auto& [name, weights] : whole.weights())
    for (size_t i = 0; i < weights.size(); ++i)
      ASSERT_NEAR(split.weights().at(name)[i].value(), *weights[i], 2e-5) << name << "[" << i << "]";
}

TEST(ShardedModels, GptOverTensorRanks) { expect_trains_alike(split_gpt(), {.tensor = 2}); }
TEST(ShardedModels, GptOverDataRanks) { expect_trains_alike(split_gpt(), {.data = 4}); }
TEST(ShardedModels, GptOverBoth) { expect_trains_alike(split_gpt(), {.data = 2, .tensor = 2}); }

// Operands and results of collectives are copied from and to memory that the host cannot touch.
TEST(ShardedModels, GptOnADeviceThatRunsLate) {
  const TrainingCase training = split_gpt();
  const MeshShape shape{.data = 2, .tensor = 2};
  EXPECT_TRUE(train_on_mesh(training, shape, kSteps, kLr, make_late_backend) ==
              train_on_mesh(training, shape, kSteps, kLr));
}

// Heads with their key heads, and hidden units, are split over the tensor ranks: projections into them by
// rows of their weights, those back by columns.
TrainingCase split_llama() {
  const LlamaSizes sizes{
      .layers = 2, .dim = 24, .heads = 6, .kv_heads = 2, .hidden = 20, .vocab = 31, .batch = 4, .seq = 8};
  TrainingCase result = case_of(build_llama(sizes));
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::string name = fmt::format("model.layers.{}.", layer);
    for (const char* into :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"})
      result.tensor.emplace(name + into + ".weight", Placement::split(0));
    for (const char* back : {"self_attn.o_proj", "mlp.down_proj"})
      result.tensor.emplace(name + back + ".weight", Placement::split(1));
  }
  return result;
}

TEST(ShardedModels, LlamaOverTensorRanks) { expect_trains_alike(split_llama(), {.tensor = 2}); }
TEST(ShardedModels, LlamaOverDataRanks) { expect_trains_alike(split_llama(), {.data = 4}); }
TEST(ShardedModels, LlamaOverBoth) { expect_trains_alike(split_llama(), {.data = 2, .tensor = 2}); }

TEST(ShardedModels, EncoderOverDataRanks) {
  const EncoderSizes sizes{
      .layers = 2, .dim = 24, .heads = 3, .hidden = 48, .vocab = 31, .classes = 4, .batch = 4, .seq = 8};
  expect_trains_alike(case_of(build_encoder(sizes)), {.data = 2});
}

TEST(ShardedModels, TabularOverDataRanks) {
  expect_trains_alike(case_of(build_tabular({3, 40, 8, 5, {16, 8}, {16}, 12})), {.data = 3});
}

// The statistics of a batch norm are those of the whole batch: its rows are gathered.
TEST(ShardedModels, ResnetOverDataRanks) {
  expect_trains_alike(case_of(build_resnet({18, 4, 32, 6, 4})), {.data = 2});
}

}  // namespace
}  // namespace lockstep::testing
