// Several workers give the bits of one.
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "comm/ranks_testing.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/resnet.h"
#include "model/tabular.h"
#include "train/state/state_hash.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

constexpr int64_t kMicrobatches = 8;
constexpr int64_t kSmallBucket = 4096;

struct Outcome {
  std::string hash;
  double loss = 0;
  double norm = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome run(const Model& model, TrainOptions options, Group* group) {
  const auto backend = make_cpu_backend(1);
  options.microbatches = kMicrobatches;
  options.workers = group == nullptr ? 1 : group->size();
  TrainStep train(model, *backend, options, group);
  StepResult result;
  for (int64_t step = 1; step <= 4; ++step)
    result =
        train.run(1e-2, [&](int64_t m) { set_synthetic_inputs(train, model, 11, step * kMicrobatches + m); });
  return {train.weights_sha256() + sha256_of(*backend, train.state().optimizer()) +
              sha256_of(*backend, train.state().averages()),
          result.loss, result.grad_norm};
}

std::vector<Outcome> run_all(const Model& model, const TrainOptions& options, const LeafSplit& split) {
  std::vector<Outcome> all(static_cast<size_t>(split.ranks()));
  testing::on_threads(
      split, [&](Group& group) { all[static_cast<size_t>(group.rank())] = run(model, options, &group); });
  return all;
}

void expect_equal_bits(const Model& model, const TrainOptions& options) {
  const Outcome one = run(model, options, nullptr);
  for (int ranks = 2; ranks <= options.leaves; ++ranks) {
    const LeafSplit split = LeafSplit::search(options.leaves, ranks);
    // Every other time in many small buckets.
    TrainOptions sliced = options;
    sliced.reduce.bucket_bytes = ranks % 2 == 0 ? kSmallBucket : 0;
    for (const Outcome& outcome : run_all(model, sliced, split)) EXPECT_EQ(outcome, one) << split.text();
  }
}

TrainOptions with_leaves(int64_t leaves) {
  TrainOptions options;
  options.leaves = leaves;
  return options;
}

TEST(Workers, GptIsTheSame) { expect_equal_bits(build_gpt({1, 24, 2, 31, 2, 9, 0.0}), with_leaves(8)); }

TEST(Workers, SeveralMicrobatchesPerLeaf) {
  expect_equal_bits(build_gpt({1, 24, 2, 31, 2, 9, 0.0}), with_leaves(4));
}

TEST(Workers, DropoutIsTheSame) {
  EncoderSizes sizes{.layers = 1,
                     .dim = 24,
                     .heads = 2,
                     .hidden = 48,
                     .vocab = 31,
                     .classes = 3,
                     .batch = 2,
                     .seq = 9,
                     .dropout = 0.2};
  expect_equal_bits(build_encoder(sizes), with_leaves(8));
}

TEST(Workers, TablesAreTheSame) {
  expect_equal_bits(build_tabular({2, 400, 8, 3, {9}, {7}, 6}), with_leaves(8));
  expect_equal_bits(build_tabular({2, 400, 8, 3, {9}, {7}, 6}), with_leaves(4));
}

TEST(Workers, RunningStatisticsAreTheSame) {
  expect_equal_bits(build_resnet({18, 4, 32, 5, 2}), with_leaves(4));
}

// Elements of parameters, state and averages are updated by different workers, or all by everyone.
TEST(Workers, EveryOptimizerIsTheSame) {
  for (const char* name : {"sgd", "adam", "adamw", "lion", "lamb", "adafactor"}) {
    SCOPED_TRACE(name);
    TrainOptions options = with_leaves(4);
    options.optimizer.name = name;
    options.ema = 0.9;
    expect_equal_bits(build_gpt({1, 24, 2, 31, 2, 9, 0.0}), options);
  }
}

TEST(Workers, CompressedGradientsAreTheSame) {
  const Model gpt = build_gpt({1, 24, 2, 31, 2, 9, 0.0});
  const Outcome exact = run(gpt, with_leaves(8), nullptr);
  for (const GradientCodec codec :
       {GradientCodec::kBf16, GradientCodec::kInt8, GradientCodec::kTopk, GradientCodec::kPowersgd}) {
    SCOPED_TRACE(name_of(codec));
    TrainOptions options = with_leaves(8);
    options.reduce.codec = codec;
    EXPECT_NE(run(gpt, options, nullptr).hash, exact.hash);
    if (!has_feedback(codec)) {
      EXPECT_NEAR(run(gpt, options, nullptr).loss, exact.loss, 0.02);
    }
    expect_equal_bits(gpt, options);
    options.leaves = 4;
    expect_equal_bits(gpt, options);
    expect_equal_bits(build_resnet({18, 4, 32, 5, 2}), options);
    expect_equal_bits(build_tabular({2, 400, 8, 3, {9}, {7}, 6}), options);
  }
}

TEST(Workers, OfAHostHoldTheStateOnce) {
  const Model model = build_gpt({1, 24, 2, 31, 2, 9, 0.0});
  std::array<std::atomic<float*>, 3> weights;
  testing::on_threads(LeafSplit::search(4, 3), [&](Group& group) {
    const auto backend = make_cpu_backend(1);
    TrainOptions options = with_leaves(4);
    options.microbatches = 4;
    options.workers = 3;
    TrainStep train(model, *backend, options, &group);
    weights[static_cast<size_t>(group.rank())] = static_cast<float*>(train.params()[0].data);
    group.barrier();
  });
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(weights[0], weights[2]);
}

// Workers of equal shares whose leaves are single microbatches add in the same order as the tree.
TEST(Workers, TheFastOrderIsTheTreeOverTheWorkers) {
  const Model model = build_gpt({1, 24, 2, 31, 2, 9, 0.0});
  TrainOptions options = with_leaves(8);
  const Outcome one = run(model, options, nullptr);
  options.reduce.order = SumOrder::kFast;
  for (const int ranks : {2, 3, 8}) {
    const LeafSplit split = LeafSplit::search(options.leaves, ranks);
    const std::vector<Outcome> all = run_all(model, options, split);
    for (const Outcome& outcome : all) EXPECT_EQ(outcome, all[0]);
    EXPECT_NEAR(all[0].loss, one.loss, 1e-5);
    EXPECT_EQ(all[0].hash == one.hash, ranks == 8) << split.text();
  }
}

TEST(Workers, TheFastOrderMergesRows) {
  const Model model = build_tabular({2, 400, 8, 3, {9}, {7}, 6});
  TrainOptions options = with_leaves(8);
  const Outcome one = run(model, options, nullptr);
  options.reduce.order = SumOrder::kFast;
  for (const int ranks : {1, 3, 8}) {
    const std::vector<Outcome> all = run_all(model, options, LeafSplit::search(options.leaves, ranks));
    for (const Outcome& outcome : all) EXPECT_EQ(outcome, all[0]);
    EXPECT_NEAR(all[0].loss, one.loss, 1e-5);
  }
}

TEST(Workers, WithoutExchangeEveryWorkerTrainsAlone) {
  TrainOptions options = with_leaves(8);
  options.reduce.exchange = false;
  for (const Model& model :
       {build_gpt({1, 24, 2, 31, 2, 9, 0.0}), build_tabular({2, 400, 8, 3, {9}, {7}, 6})}) {
    const std::vector<Outcome> all = run_all(model, options, LeafSplit::search(options.leaves, 3));
    EXPECT_NE(all[0].hash, all[1].hash);
  }
}

}  // namespace
}  // namespace lockstep
