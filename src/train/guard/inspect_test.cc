#include "train/guard/inspect.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/encoder.h"
#include "model/gpt.h"
#include "model/resnet.h"
#include "model/tabular.h"
#include "train/step/synthetic.h"

namespace lockstep {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kMicrobatches = 4;

Model small_encoder() {
  return build_encoder(
      {.layers = 2, .dim = 32, .heads = 2, .hidden = 64, .vocab = 50, .classes = 2, .batch = 4, .seq = 8});
}

// A step of four microbatches of random data, one of which can be spoilt.
struct Scene {
  explicit Scene(Model m, bool bf16 = false, int64_t leaves = kMicrobatches, int threads = 1)
      : model(std::move(m)), backend(make_cpu_backend(threads)) {
    options.microbatches = kMicrobatches;
    options.leaves = leaves;
    if (bf16) options.passes.compute = DType::kBF16;
    train = std::make_unique<TrainStep>(model, *backend, options);
  }

  StepResult accumulate() { return train->accumulate(loader(), 1); }

  Loader loader() {
    return [this](int64_t m) {
      set_synthetic_inputs(*train, model, 5, m);
      if (spoil) spoil(m);
    };
  }

  Inspection inspect_step(Trouble trouble) {
    return inspect(*train, model,
                   {.trouble = trouble,
                    .step = 1,
                    .microbatches = kMicrobatches,
                    .load = loader(),
                    .describe = [](int64_t m, int64_t row) { return fmt::format("m{}r{}", m, row); },
                    .passes = options.passes});
  }

  void set_one(const std::string& param, size_t element, float value) {
    std::vector<float> values = train->param(param);
    values[element] = value;
    train->set_param(param, values);
  }

  Model model;
  std::unique_ptr<Backend> backend;
  TrainOptions options;
  std::unique_ptr<TrainStep> train;
  std::function<void(int64_t)> spoil;
};

TEST(Inspect, BlamesAParameterThatWasBadBefore) {
  Scene scene(small_encoder());
  scene.set_one("encoder.layer.1.output.dense.weight", 7, kNan);
  EXPECT_TRUE(std::isnan(scene.accumulate().loss));
  const Inspection found = scene.inspect_step(Trouble::kNonFiniteLoss);
  EXPECT_TRUE(found.parameter_was_bad);
  EXPECT_EQ(found.parameter, "encoder.layer.1.output.dense.weight");
  EXPECT_EQ(found.first->element, 7);
}

TEST(Inspect, NamesTheNodeAndParameterThatOverflow) {
  for (const bool bf16 : {false, true}) {
    Scene scene(small_encoder(), bf16);
    // Layer norm gives at most sqrt(32), so that 1e38 times it overflows in the product with this weight.
    std::vector<float> weight = scene.train->param("encoder.layer.1.intermediate.dense.weight");
    for (float& x : weight) x = 3e38f;
    scene.train->set_param("encoder.layer.1.intermediate.dense.weight", weight);
    scene.accumulate();
    const Inspection found = scene.inspect_step(Trouble::kNonFiniteLoss);
    EXPECT_FALSE(found.parameter_was_bad);
    EXPECT_EQ(found.microbatch, 0);
    ASSERT_TRUE(found.first.has_value());
    EXPECT_FALSE(found.first->in_backward);
    EXPECT_EQ(found.parameter, "encoder.layer.1.intermediate.dense.weight");
    EXPECT_EQ(found.samples.size(), 1u);
    EXPECT_EQ(found.fp32_finite.has_value(), bf16);
    EXPECT_FALSE(found.fp32_finite.value_or(false));
  }
}

TEST(Inspect, LooksThroughAModelWithRunningStatistics) {
  Scene scene(build_resnet({.depth = 18, .width = 4, .image = 32, .classes = 3, .batch = 2}), true);
  std::vector<float> weight = scene.train->param("layer2.0.conv1.weight");
  for (float& x : weight) x = 3e38f;
  scene.train->set_param("layer2.0.conv1.weight", weight);
  scene.accumulate();
  const Inspection found = scene.inspect_step(Trouble::kNonFiniteLoss);
  ASSERT_TRUE(found.first.has_value());
  EXPECT_EQ(found.first->op, "conv2d");
  EXPECT_EQ(found.parameter, "layer2.0.conv1.weight");
  EXPECT_EQ(found.fp32_finite, false);
}

TEST(Inspect, NamesTheRecordOfABadInput) {
  Scene scene(build_tabular({2, 400, 8, 3, {9}, {7}, 6}));
  scene.spoil = [&](int64_t m) {
    if (m != 2) return;
    std::vector<float> dense(6 * 3, 0.5f);
    dense[4 * 3 + 1] = kNan;
    scene.train->set_input("dense", dense.data(), static_cast<int64_t>(dense.size() * sizeof(float)));
  };
  scene.accumulate();
  const Inspection found = scene.inspect_step(Trouble::kNonFiniteLoss);
  EXPECT_EQ(found.microbatch, 2);
  ASSERT_TRUE(found.bad_input.has_value());
  EXPECT_EQ(found.bad_input->column, "dense");
  EXPECT_EQ(found.bad_input->row, 4);
  EXPECT_EQ(found.bad_input->record, "m2r4");
  EXPECT_EQ(found.bad_input->value, "nan");
  EXPECT_EQ(found.losses.size(), 2u);  // those before it were good
}

TEST(Inspect, NamesAMaskedBatch) {
  Scene scene(small_encoder());
  scene.spoil = [&](int64_t) {
    const std::vector<int32_t> labels(4, -100);
    scene.train->set_input("labels", labels.data(), 16);
  };
  EXPECT_EQ(scene.accumulate().count, 0);
  const Inspection found = scene.inspect_step(Trouble::kNothingCounted);
  EXPECT_FALSE(found.bad_input.has_value());
  EXPECT_EQ(found.samples.size(), 4u);
}

TEST(Inspect, BlamesTheMicrobatchWithTheLargestLossForASpike) {
  Scene scene(small_encoder());
  scene.accumulate();
  const Inspection found = scene.inspect_step(Trouble::kSpikeLoss);
  ASSERT_EQ(found.losses.size(), 4u);
  for (const double loss : found.losses)
    EXPECT_LE(loss, found.losses[static_cast<size_t>(*found.microbatch)]);
}

// Inspecting must leave no trace: a skipped step is followed by others.
TEST(Inspect, LeavesTheRunAsItWas) {
  const auto hash_after = [](const Model& model, bool inspected) {
    Scene scene(model, true);
    scene.accumulate();
    if (inspected) scene.inspect_step(Trouble::kSpikeLoss);
    scene.train->run(1e-3, scene.loader());
    return scene.train->weights_sha256();
  };
  // Tables that are caught up late, and batch norms with running statistics, are kept beside the parameters.
  for (const Model& model : {small_encoder(), build_tabular({2, 400, 8, 3, {9}, {7}, 6}),
                             build_resnet({.depth = 18, .width = 4, .image = 32, .classes = 3, .batch = 2})})
    EXPECT_EQ(hash_after(model, true), hash_after(model, false));
}

// The same walk into divergence, decided and inspected alike for any number of threads; and with other leaves
// for the sums the same decisions at the same steps.
struct Walk {
  std::vector<std::string> decisions;
  std::string node;
};

Walk diverge(int64_t leaves, int threads) {
  Scene scene(build_gpt({2, 32, 2, 50, 2, 8, 0.0}), true, leaves, threads);
  GuardSettings settings;
  settings.policy = NonFinitePolicy::kSkip;
  settings.max_skips = 2;
  Guard guard(settings);
  Walk walk;
  for (int64_t step = 1; step <= 30; ++step) {
    const StepResult result = scene.accumulate();
    const Decision decision = guard.decide({step, result.loss, result.grad_norm, result.count});
    walk.decisions.push_back(
        fmt::format("{} {} {}", step, name_of(decision.action), name_of(decision.trouble)));
    if (decision.action == Decision::Action::kStop) {
      const Inspection found = scene.inspect_step(decision.trouble);
      if (found.first) walk.node = fmt::format("{}[{}]", found.first->value, found.first->element);
      break;
    }
    if (decision.action == Decision::Action::kApply) scene.train->apply(1e25);
  }
  return walk;
}

TEST(Inspect, DecidesAlikeForAnyThreadsAndLeaves) {
  const Walk one = diverge(1, 1);
  EXPECT_TRUE(one.decisions.back().find("stop") != std::string::npos);
  EXPECT_FALSE(one.node.empty());
  for (const int threads : {1, 3, 8}) {
    const Walk other = diverge(4, threads);
    EXPECT_EQ(other.decisions, one.decisions);
    EXPECT_EQ(other.node, one.node);
  }
}

}  // namespace
}  // namespace lockstep
