// A backend without the kernels that are made for groups of ops trains every family: to the same bits where
// what an op decomposes into does the same arithmetic, and otherwise to within rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "backend/refusing_backend_testing.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "model/resnet.h"
#include "model/tabular.h"
#include "ops/registry.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

Model small(const std::string& family) {
  if (family == "gpt") return build_gpt({2, 24, 3, 50, 3, 17, 0.1});
  if (family == "llama")
    return build_llama({.layers = 2,
                        .dim = 24,
                        .heads = 6,
                        .kv_heads = 2,
                        .hidden = 40,
                        .vocab = 50,
                        .batch = 3,
                        .seq = 17});
  if (family == "encoder") return build_encoder({2, 24, 3, 96, 40, 3, 4, 11, 0.1, true});
  if (family == "tabular") return build_tabular({3, 61, 8, 5, {17, 9}, {20, 10}, 30});
  return build_resnet({18, 4, 32, 10, 4});
}

struct Trained {
  std::string hash;
  std::vector<double> losses;
  std::vector<float> gradients;  // of the first step; of all parameters, in their order
  std::vector<float> weights;
};

Trained train(const Model& model, std::set<std::string> refused, const std::string& optimizer) {
  RefusingBackend backend(make_cpu_backend(2), std::move(refused));
  TrainOptions options;
  options.seed = 5;
  options.optimizer.name = optimizer;
  TrainStep step(model, backend, options);
  Trained trained;
  const auto gather = [&](std::vector<float>& into, const auto& values_of) {
    for (const ParamInit& param : model.params) {
      const std::vector<float> values = values_of(param.name);
      into.insert(into.end(), values.begin(), values.end());
    }
  };
  for (int64_t i = 1; i <= 3; ++i) {
    set_synthetic_inputs(step, model, 9, i);
    trained.losses.push_back(step.accumulate().loss);
    if (i == 1) gather(trained.gradients, [&](const std::string& name) { return step.grad(name); });
    step.apply(1e-3);
  }
  trained.hash = step.weights_sha256();
  gather(trained.weights, [&](const std::string& name) { return step.param(name); });
  return trained;
}

std::set<std::string> decomposable() {
  std::set<std::string> names;
  for (const OpDef& op : all_ops().all())
    if (op.decompose != nullptr) names.emplace(op.name);
  return names;
}

class Lowering : public ::testing::TestWithParam<std::string> {};

TEST_P(Lowering, FusedOpsAreTheirPartsBitByBit) {
  const Model model = small(GetParam());
  EXPECT_EQ(train(model, {"fused", "fused_sum"}, "adamw").hash, train(model, {}, "adamw").hash);
}

// The length of the difference beside the length of what is wanted.
double distance(const std::vector<float>& got, const std::vector<float>& want) {
  double difference = 0, length = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - want[i], 2.0);
    length += std::pow(static_cast<double>(want[i]), 2.0);
  }
  return std::sqrt(difference / length);
}

TEST_P(Lowering, EverythingThatDecomposesTrainsToWithinRounding) {
  const Model model = small(GetParam());
  const Trained want = train(model, {}, "adamw");
  const Trained got = train(model, decomposable(), "adamw");
  // The last stage of so small a resnet normalises over four pixels, which makes much of little.
  const double tolerance = GetParam() == "resnet" ? 5e-3 : 1e-5;
  ASSERT_EQ(got.gradients.size(), want.gradients.size());
  EXPECT_LT(distance(got.gradients, want.gradients), tolerance);
  EXPECT_LT(distance(got.weights, want.weights), tolerance);
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], 1e-3 * std::abs(want.losses[i])) << "step " << i + 1;
}

TEST(LoweringOfOptimizers, MovesTheWeightsAlike) {
  const Model model = small("gpt");
  for (const char* optimizer : {"sgd", "adam", "lion"}) {
    const Trained want = train(model, {}, optimizer);
    const Trained got = train(model, {"sgd", "adam", "lion", "global_norm"}, optimizer);
    double worst = 0;
    for (size_t i = 0; i < want.weights.size(); ++i)
      worst = std::max(worst, static_cast<double>(std::abs(got.weights[i] - want.weights[i])));
    EXPECT_LT(worst, 1e-5) << optimizer;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Lowering, ::testing::Values("gpt", "llama", "encoder", "tabular", "resnet"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lockstep
