// Microbatches and leaves: what a step computes when it is cut up.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "model/gpt.h"
#include "model/tabular.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

struct Outcome {
  std::string hash;
  double loss = 0;
  double norm = 0;
};

Outcome run(const Model& model, int64_t microbatches, int64_t leaves, int threads = 2) {
  const auto backend = make_cpu_backend(threads);
  TrainOptions options;
  options.microbatches = microbatches;
  options.leaves = leaves;
  TrainStep train(model, *backend, options);
  StepResult result;
  for (int64_t step = 1; step <= 3; ++step)
    result =
        train.run(1e-2, [&](int64_t m) { set_synthetic_inputs(train, model, 11, step * microbatches + m); });
  return {train.weights_sha256(), result.loss, result.grad_norm};
}

TEST(Microbatch, EqualBitsForAnyNumberOfThreads) {
  for (const Model& model :
       {build_gpt({1, 24, 2, 31, 2, 9, 0.0}), build_tabular({2, 400, 8, 3, {9}, {7}, 6})}) {
    const Outcome one = run(model, 8, 4, 1);
    EXPECT_EQ(run(model, 8, 4, 3).hash, one.hash);
    // Another tree rounds differently: leaves belong to the identity of a run. The result is the same but for
    // that.
    const Outcome flat = run(model, 8, 1, 1);
    EXPECT_NE(flat.hash, one.hash);
    EXPECT_NEAR(flat.loss, one.loss, 1e-4 * std::fabs(one.loss));
    EXPECT_NEAR(flat.norm, one.norm, 1e-3 * one.norm);
  }
}

TEST(Microbatch, RefusesLeavesThatDoNotDivide) {
  const Model model = build_gpt({1, 24, 2, 31, 2, 9, 0.0});
  EXPECT_THROW(run(model, 6, 4), UserError);
}

// Twice the same data give exactly twice the gradient: every microbatch of a step computes with one rounding
// of the weights, and the next step with another.
TEST(Microbatch, AStepRoundsItsWeightsOnce) {
  const Model model = build_gpt({1, 24, 2, 31, 2, 9, 0.0});
  const auto backend = make_cpu_backend(1);
  TrainOptions options;
  options.passes.compute = DType::kBF16;
  options.passes.stochastic_rounding = true;
  const auto gradient = [&](int64_t microbatches, int64_t step) {
    options.microbatches = options.leaves = microbatches;
    TrainStep train(model, *backend, options);
    train.accumulate([&](int64_t) { set_synthetic_inputs(train, model, 11, 1); }, step);
    return train.grad("wte.weight");
  };
  std::vector<float> once = gradient(1, 1);
  for (float& value : once) value *= 2;
  EXPECT_EQ(gradient(2, 1), once);
  EXPECT_NE(gradient(2, 2), once);
}

}  // namespace
}  // namespace lockstep
