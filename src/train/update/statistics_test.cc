// Running statistics: what they are, and that they depend on the step's microbatches and its tree alone.
#include "train/update/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/resnet.h"
#include "train/evaluate/evaluate.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

constexpr int64_t kMicrobatches = 8;

const Model& model() {
  static const Model resnet = build_resnet({18, 4, 32, 5, 2});
  return resnet;
}

TrainOptions options_for(int64_t microbatches, int64_t leaves) {
  TrainOptions options;
  options.microbatches = microbatches;
  options.leaves = leaves;
  return options;
}

std::vector<float> values_of(Backend& backend, const std::vector<StateTensor>& tensors) {
  std::vector<float> values;
  for (const StateTensor& tensor : tensors) {
    const size_t before = values.size();
    values.resize(before + static_cast<size_t>(tensor.shape.numel()));
    backend.download(values.data() + before, tensor.data, tensor.bytes());
  }
  return values;
}

// The statistics after some steps, each of the microbatches that follow `first`.
std::vector<float> train(int64_t microbatches, int64_t leaves, int64_t first, int64_t steps, int threads,
                         double lr = 1e-2) {
  const auto backend = make_cpu_backend(threads);
  TrainStep train(model(), *backend, options_for(microbatches, leaves));
  for (int64_t step = 0; step < steps; ++step)
    train.run(lr,
              [&](int64_t m) { set_synthetic_inputs(train, model(), 11, first + step * microbatches + m); });
  return values_of(*backend, train.state().statistics());
}

TEST(Statistics, BeginAtMeanZeroAndVarianceOne) {
  const auto backend = make_cpu_backend(1);
  TrainStep train(model(), *backend, {});
  ASSERT_EQ(train.state().statistics().size(), model().statistics.size());
  EXPECT_EQ(train.state().model().size(), train.params().size() + model().statistics.size());
  for (const StateTensor& tensor : train.state().statistics())
    for (const float value : values_of(*backend, {tensor}))
      EXPECT_EQ(value, tensor.name.ends_with("running_var") ? 1.0f : 0.0f) << tensor.name;
}

TEST(Statistics, AStepMovesThemByTheMeanOfItsMicrobatches) {
  std::vector<double> mean;
  for (int64_t m = 0; m < kMicrobatches; ++m) {
    const std::vector<float> alone = train(1, 1, m, 1, 2);
    mean.resize(alone.size(), 0.0);
    for (size_t i = 0; i < alone.size(); ++i) mean[i] += static_cast<double>(alone[i]) / kMicrobatches;
  }
  // One microbatch moves them by momentum, a step of M by 1 - (1 - momentum)^M.
  const double momentum = model().statistics_momentum;
  const double longer = (1 - std::pow(1 - momentum, static_cast<double>(kMicrobatches))) / momentum;
  const std::vector<float> start = train(1, 1, 0, 0, 1);
  for (const int64_t leaves : {1, 2, 4, 8}) {
    const std::vector<float> together = train(kMicrobatches, leaves, 0, 1, 2);
    ASSERT_EQ(together.size(), mean.size());
    for (size_t i = 0; i < mean.size(); ++i) {
      const double expected = start[i] + longer * (mean[i] - start[i]);
      EXPECT_NEAR(together[i], expected, 5e-6 * std::max(1.0, std::fabs(expected)))
          << i << ", " << leaves << " leaves";
    }
  }
}

TEST(Statistics, AnyNumberOfThreads) {
  for (const int64_t leaves : {1, 2, 4, 8}) {
    const std::vector<float> want = train(kMicrobatches, leaves, 0, 2, 1);
    for (const int threads : {2, 8})
      EXPECT_EQ(train(kMicrobatches, leaves, 0, 2, threads), want) << leaves << " leaves";
  }
}

TEST(Statistics, ASkippedStepLeavesThem) {
  const auto backend = make_cpu_backend(2);
  TrainStep train(model(), *backend, options_for(4, 2));
  const auto load = [&](int64_t m) { set_synthetic_inputs(train, model(), 11, m); };
  train.run(1e-2, load);
  const std::string before = train.weights_sha256();
  train.accumulate(load);
  EXPECT_EQ(train.weights_sha256(), before);
}

TEST(Statistics, BelongToTheHashOfTheWeights) {
  const auto backend = make_cpu_backend(1);
  TrainStep train(model(), *backend, {});
  const std::string before = train.weights_sha256();
  const float moved = 2;
  backend->upload(train.state().statistics()[0].data, &moved, sizeof moved);
  EXPECT_NE(train.weights_sha256(), before);
}

TEST(Statistics, EvaluationFindsThemBesideTheAverages) {
  const auto backend = make_cpu_backend(1);
  TrainOptions options;
  options.ema = 0.5;
  TrainStep train(model(), *backend, options);
  const TrainState& state = train.state();
  EXPECT_EQ(state.evaluated("bn1.running_var"), state.statistics()[1].data);
  EXPECT_EQ(state.evaluated(state.params()[3].name), state.averages()[3].data);
}

}  // namespace
}  // namespace lockstep
