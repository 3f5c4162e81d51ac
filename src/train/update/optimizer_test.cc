// Every optimizer trains the small models, and gives the same bits for any number of threads.
#include "train/update/optimizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/gpt.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

class OptimizerTest : public ::testing::TestWithParam<std::string> {};

struct Outcome {
  double first = 0;
  double last = 0;
  std::string hash;
};

Outcome train(const std::string& name, int threads) {
  const Model model = build_gpt({1, 32, 2, 40, 2, 12, 0.0});
  const auto backend = make_cpu_backend(threads);
  TrainOptions options;
  options.optimizer.name = name;
  TrainStep step(model, *backend, options);
  set_synthetic_inputs(step, model, 1, 1);
  Outcome outcome;
  for (int64_t t = 1; t <= 20; ++t) {
    const StepResult result = step.run(name == "sgd" ? 0.1 : 3e-3);
    if (t == 1) outcome.first = result.loss;
    outcome.last = result.loss;
  }
  outcome.hash = step.weights_sha256();
  return outcome;
}

TEST_P(OptimizerTest, LowersTheLossOfARepeatedBatch) {
  const Outcome outcome = train(GetParam(), 2);
  EXPECT_LT(outcome.last, outcome.first - 0.01);
  EXPECT_EQ(train(GetParam(), 3).hash, outcome.hash);
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerTest,
                         ::testing::Values("sgd", "adam", "adamw", "lamb", "lion", "adafactor"),
                         [](const auto& info) { return info.param; });

TEST(Optimizer, AnUnknownNameIsAnswered) {
  OptimizerSettings settings;
  settings.name = "adamx";
  EXPECT_THROW(optimizer_state({}, settings), UserError);
}

}  // namespace
}  // namespace lockstep
