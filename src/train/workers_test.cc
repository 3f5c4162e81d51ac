// Several workers give the bits of one.
#include <gtest/gtest.h>

#include "comm/ranks_testing.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/resnet.h"
#include "model/tabular.h"
#include "train/synthetic.h"
#include "train/train_step.h"

namespace lockstep {
namespace {

constexpr int64_t kMicrobatches = 8;

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
  return {train.weights_sha256(), result.loss, result.grad_norm};
}

void expect_equal_bits(const Model& model, const TrainOptions& options) {
  const Outcome one = run(model, options, nullptr);
  for (int ranks = 2; ranks <= options.leaves; ++ranks) {
    const LeafSplit split = LeafSplit::search(options.leaves, ranks);
    std::vector<Outcome> all(static_cast<size_t>(ranks));
    testing::on_threads(
        split, [&](Group& group) { all[static_cast<size_t>(group.rank())] = run(model, options, &group); });
    for (const Outcome& outcome : all) EXPECT_EQ(outcome, one) << split.text();
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

}  // namespace
}  // namespace lockstep
