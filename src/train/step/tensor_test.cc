// Steps of models that are split into leaves, beside those of the models as they are. That tensor ranks give
// the bits of one worker is in tests/run/tensor_run_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

Model tiny_gpt() {
  return build_gpt({.layers = 2, .dim = 32, .heads = 4, .vocab = 31, .batch = 2, .seq = 8});
}
Model tiny_llama() {
  return build_llama(
      {.layers = 2, .dim = 32, .heads = 8, .kv_heads = 4, .hidden = 48, .vocab = 31, .batch = 2, .seq = 8});
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

TEST(TensorStep, RefusesOptimizersThatNeedWholeTensors) {
  const auto backend = make_cpu_backend(1);
  TrainOptions options = options_with(2);
  options.optimizer.name = "lamb";
  EXPECT_THROW(TrainStep(tiny_gpt(), *backend, options), UserError);
}

}  // namespace
}  // namespace lockstep
