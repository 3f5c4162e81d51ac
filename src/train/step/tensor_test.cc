// Steps of models that are split into leaves, beside those of the models as they are. That tensor ranks give
// the bits of one worker is in tests/run/tensor_run_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "train/step/synthetic.h"
#include "train/step/train_memory.h"
#include "train/step/train_plans.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

// A vocabulary of 31 is left whole, one of 44 is cut.
Model tiny_gpt(int64_t vocab = 31) {
  return build_gpt({.layers = 2, .dim = 32, .heads = 4, .vocab = vocab, .batch = 2, .seq = 8});
}
Model tiny_llama(int64_t vocab = 31, bool tied = false) {
  return build_llama({.layers = 2,
                      .dim = 32,
                      .heads = 8,
                      .kv_heads = 4,
                      .hidden = 48,
                      .vocab = vocab,
                      .batch = 2,
                      .seq = 8,
                      .tied = tied});
}
Model tiny_encoder() {
  return build_encoder({.layers = 1,
                        .dim = 32,
                        .heads = 4,
                        .hidden = 64,
                        .vocab = 31,
                        .classes = 3,
                        .batch = 2,
                        .seq = 8,
                        .dropout = 0.1});
}

TrainOptions options_with(int64_t leaves) {
  TrainOptions options;
  options.optimizer.clip_norm = 1;
  options.seed = 3;
  options.tensor_leaves = leaves;
  return options;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& wanted, const std::string& name) {
  double most = 1e-6;
  for (const float value : wanted) most = std::max(most, std::abs(static_cast<double>(value)));
  ASSERT_EQ(found.size(), wanted.size()) << name;
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 2e-5 * most) << name << " " << i;
}

// The same weights at the start, the same dropout, and gradients that differ by rounding.
void expect_gradients_of_the_whole(const Model& model, int64_t leaves) {
  const auto backend = make_cpu_backend(1);
  TrainStep whole(model, *backend, options_with(1));
  TrainStep split(model, *backend, options_with(leaves));
  EXPECT_EQ(split.weights_sha256(), whole.weights_sha256());
  for (TrainStep* train : {&whole, &split}) set_synthetic_inputs(*train, model, 1, 1);
  const StepResult wanted = whole.accumulate(), found = split.accumulate();
  EXPECT_NEAR(found.loss, wanted.loss, 1e-5 * wanted.loss);
  EXPECT_NEAR(found.grad_norm, wanted.grad_norm, 1e-4 * wanted.grad_norm);
  for (const StateTensor& param : whole.params())
    expect_near(split.grad(param.name), whole.grad(param.name), param.name);
}

TEST(TensorStep, GradientsAreThoseOfTheWholeGpt) { expect_gradients_of_the_whole(tiny_gpt(), 4); }
TEST(TensorStep, GradientsAreThoseOfTheWholeLlama) { expect_gradients_of_the_whole(tiny_llama(), 4); }
TEST(TensorStep, GradientsAreThoseOfTheWholeEncoder) { expect_gradients_of_the_whole(tiny_encoder(), 2); }

TEST(TensorStep, GradientsAreThoseOfTheWholeWithTheVocabularyCut) {
  expect_gradients_of_the_whole(tiny_gpt(44), 4);
  expect_gradients_of_the_whole(tiny_llama(44), 4);
  expect_gradients_of_the_whole(tiny_llama(44, true), 2);
}

// Parameters are seen as those of the model, also written so.
TEST(TensorStep, PiecesAreSeenAsParameters) {
  const auto backend = make_cpu_backend(1);
  TrainStep train(tiny_gpt(), *backend, options_with(4));
  std::vector<float> values = train.param("h.1.attn.c_attn.weight");
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  train.set_param("h.1.attn.c_attn.weight", values);
  EXPECT_EQ(train.param("h.1.attn.c_attn.weight"), values);
  EXPECT_EQ(train.param_count(), TrainStep(tiny_gpt(), *backend, options_with(1)).param_count());
}

// Of a vocabulary that is cut, a tensor rank has its share of rows, moments and logits.
TEST(TensorStep, ARankHasItsShareOfTheVocabulary) {
  const auto backend = make_cpu_backend(1);
  TrainOptions options = options_with(4);
  options.mesh = {1, 1, 4};
  const auto plans_of = [&](int64_t vocab) {
    return plan_training(tiny_llama(vocab), *backend, options, nullptr);
  };
  const auto memory_of = [&](const TrainPlans& plans) { return train_memory(plans, options); };
  const TrainPlans small = plans_of(4096), large = plans_of(8192), whole = plans_of(4098);
  constexpr int64_t kRow = 2 * 32 * 4;  // of table and head, in f32
  EXPECT_EQ(memory_of(large).parameters - memory_of(small).parameters, kRow * 4096 / 4);
  EXPECT_EQ(memory_of(large).state - memory_of(small).state, 2 * kRow * 4096 / 4);
  EXPECT_GE(memory_of(whole).parameters - memory_of(small).parameters, kRow * 4096 * 3 / 4);
  const auto widest = [](const TrainPlans& plans) {
    const Graph& graph = plans[Phase::kBackward]->graph;
    int64_t elements = 0;
    for (const Node& node : graph.nodes())
      for (const Value output : node.outputs) elements = std::max(elements, graph.type(output).shape.numel());
    return elements;
  };
  constexpr int64_t kTokens = 16;
  EXPECT_EQ(widest(whole), 4098 * 32);       // the gradient of the table
  EXPECT_EQ(widest(small), 4096 / 4 * 32);   // that of a part
  EXPECT_LT(widest(small), kTokens * 4096);  // and no logits of all tokens and classes
}

TEST(TensorStep, RefusesOptimizersThatNeedWholeTensors) {
  const auto backend = make_cpu_backend(1);
  TrainOptions options = options_with(2);
  options.optimizer.name = "lamb";
  EXPECT_THROW(TrainStep(tiny_gpt(), *backend, options), UserError);
}

}  // namespace
}  // namespace lockstep
