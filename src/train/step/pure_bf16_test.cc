// Parameters, gradients and sums in bf16 without an f32 copy: the same bits on any number of threads and
// workers, on a state that was written and read back, and a model that learns.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/sha256.h"
#include "comm/ranks_testing.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "model/resnet.h"
#include "model/stored_params.h"
#include "model/tabular.h"
#include "train/state/state_hash.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

constexpr int64_t kMicrobatches = 8;

Model pure_gpt() { return stored_in(DType::kBF16, build_gpt({1, 24, 2, 31, 2, 9, 0.1})); }

TrainOptions pure_options(int64_t leaves = 4, DType moments = DType::kF32) {
  TrainOptions options;
  options.microbatches = kMicrobatches;
  options.leaves = leaves;
  options.seed = 5;
  options.passes.compute = DType::kBF16;
  options.optimizer.moments = moments;
  return options;
}

void run_steps(TrainStep& train, const Model& model, int64_t first, int64_t end) {
  for (int64_t step = first; step < end; ++step)
    train.run(1e-2, [&](int64_t m) { set_synthetic_inputs(train, model, 11, step * kMicrobatches + m); });
}

std::string hash_of(TrainStep& train) {
  return train.weights_sha256() + sha256_of(train.backend(), train.state().optimizer()) +
         sha256_of(train.backend(), train.state().averages());
}

std::string hash_after(const Model& model, TrainOptions options, int threads, Group* group = nullptr) {
  const auto backend = make_cpu_backend(threads);
  options.workers = group == nullptr ? 1 : group->size();
  TrainStep train(model, *backend, options, group);
  run_steps(train, model, 1, 4);
  return hash_of(train);
}

void expect_same_bits(const Model& model, TrainOptions options) {
  const std::string one = hash_after(model, options, 1);
  EXPECT_EQ(hash_after(model, options, 3), one) << "3 threads";
  for (int ranks = 2; ranks <= options.leaves; ++ranks) {
    // Every other time in many small buckets.
    options.reduce.bucket_bytes = ranks % 2 == 0 ? 4096 : 0;
    std::vector<std::string> all(static_cast<size_t>(ranks));
    testing::on_threads(LeafSplit::search(options.leaves, ranks), [&](Group& group) {
      all[static_cast<size_t>(group.rank())] = hash_after(model, options, 1, &group);
    });
    for (const std::string& hash : all) EXPECT_EQ(hash, one) << ranks << " workers";
  }
}

TEST(PureBf16, GptIsTheSameOnThreadsAndWorkers) {
  expect_same_bits(pure_gpt(), pure_options(8));
  expect_same_bits(pure_gpt(), pure_options(4, DType::kBF16));
}

TEST(PureBf16, StatisticsBehindTheGradientsAreTheSame) {
  expect_same_bits(stored_in(DType::kBF16, build_resnet({18, 4, 32, 5, 2})), pure_options());
}

TEST(PureBf16, TablesAreTheSame) {
  expect_same_bits(stored_in(DType::kBF16, build_tabular({2, 400, 8, 3, {9}, {7}, 6})), pure_options());
}

TEST(PureBf16, EveryOptimizerThatUpdatesElementsIsTheSame) {
  for (const char* name : {"sgd", "adam", "adamw", "lion"}) {
    SCOPED_TRACE(name);
    TrainOptions options = pure_options(4, DType::kBF16);
    options.optimizer.name = name;
    options.ema = 0.9;
    expect_same_bits(pure_gpt(), options);
  }
}

TEST(PureBf16, AnOptimizerOfWholeTensorsIsRefused) {
  const auto backend = make_cpu_backend(1);
  for (const char* name : {"lamb", "adafactor"}) {
    TrainOptions options = pure_options();
    options.optimizer.name = name;
    EXPECT_THROW(TrainStep(pure_gpt(), *backend, options), UserError) << name;
  }
}

TEST(PureBf16, RecomputeChangesNothingAndSeedsDo) {
  const std::string want = hash_after(pure_gpt(), pure_options(), 2);
  for (const Recompute policy : {Recompute::kCheap, Recompute::kBlock}) {
    TrainOptions options = pure_options();
    options.passes.recompute = policy;
    EXPECT_EQ(hash_after(pure_gpt(), options, 2), want) << name_of(policy);
  }
  TrainOptions options = pure_options();
  options.seed = 6;
  EXPECT_NE(hash_after(pure_gpt(), options, 2), want);
  EXPECT_NE(hash_after(pure_gpt(), pure_options(2), 2), want) << "another tree is rounded at other nodes";
  EXPECT_NE(hash_after(pure_gpt(), pure_options(4, DType::kBF16), 2), want);
}

// The draws of an update are those of its step: whoever goes on from a state rounds as the first would have.
TEST(PureBf16, GoesOnFromAState) {
  const auto backend = make_cpu_backend(2);
  const Model model = pure_gpt();
  const TrainOptions options = pure_options(4, DType::kBF16);
  TrainStep whole(model, *backend, options), rest(model, *backend, options);
  run_steps(whole, model, 1, 4);
  const auto copy = [&](const std::vector<StateTensor>& from, const std::vector<StateTensor>& to) {
    for (size_t i = 0; i < from.size(); ++i) backend->copy(to[i].data, from[i].data, from[i].bytes());
  };
  copy(whole.state().model(), rest.state().model());
  copy(whole.state().optimizer(), rest.state().optimizer());
  rest.restored(whole.steps_applied());
  EXPECT_EQ(hash_of(rest), hash_of(whole));
  run_steps(whole, model, 4, 7);
  run_steps(rest, model, 4, 7);
  EXPECT_EQ(hash_of(rest), hash_of(whole));
}

TEST(PureBf16, KeepsEverythingInTwoBytes) {
  const auto backend = make_cpu_backend(1);
  TrainOptions options = pure_options(4, DType::kBF16);
  options.ema = 0.9;
  TrainStep train(pure_gpt(), *backend, options);
  for (const StateTensor& tensor : train.params()) EXPECT_EQ(tensor.dtype, DType::kBF16) << tensor.name;
  for (const StateTensor& tensor : train.state().optimizer())
    EXPECT_EQ(tensor.dtype, DType::kBF16) << tensor.name;
  // They move by less than bf16 can hold, and begin as the weights.
  for (size_t i = 0; i < train.params().size(); ++i) {
    const StateTensor& average = train.state().averages()[i];
    EXPECT_EQ(average.dtype, DType::kF32);
    std::vector<float> values(static_cast<size_t>(average.shape.numel()));
    backend->download(values.data(), average.data, average.bytes());
    EXPECT_EQ(values, train.param(train.params()[i].name));
  }
}

// Hashes are over values as f32: the same numbers under another storage differ in the named type alone.
TEST(PureBf16, TheHashIsOverF32Values) {
  const auto backend = make_cpu_backend(1);
  const std::vector<uint16_t> stored = {to_bf16(1.5f), to_bf16(-2.0f), to_bf16(0.1f)};
  std::vector<float> wide;
  for (const uint16_t bits : stored) wide.push_back(from_bf16(bits));
  Sha256 values, hash;
  values.update(std::as_bytes(std::span<const float>(wide)));
  hash.update(std::string_view("w"));
  hash.update(name_of(DType::kBF16));
  hash.update(to_string(Shape{3}));
  hash.update(values.finish());
  EXPECT_EQ(sha256_of(*backend, {{"w", DType::kBF16, {3}, const_cast<uint16_t*>(stored.data())}}),
            hash.finish());
}

double loss_after(const Model& model, const TrainOptions& options, double lr) {
  const auto backend = make_cpu_backend(2);
  TrainStep train(model, *backend, options);
  double loss = 0;
  for (int64_t step = 1; step <= 40; ++step)
    loss = train.run(lr, [&](int64_t m) { set_synthetic_inputs(train, model, 11, m); }).loss;
  return loss;
}

// Beside f32 weights with the same arithmetic: the same data is learnt about as well. At this rate most
// updates are below half a last place of their weight.
TEST(PureBf16, LearnsAsMasterWeightsDo) {
  const Model model = build_llama(
      {.layers = 1, .dim = 32, .heads = 4, .kv_heads = 2, .hidden = 48, .vocab = 31, .batch = 2, .seq = 9});
  const TrainOptions options = pure_options();
  const double begun = std::log(31.0), master = loss_after(model, options, 3e-4);
  EXPECT_LT(master, begun - 0.05);
  for (const DType moments : {DType::kF32, DType::kBF16}) {
    const double pure = loss_after(stored_in(DType::kBF16, model), pure_options(4, moments), 3e-4);
    EXPECT_NEAR(begun - pure, begun - master, 0.1 * (begun - master)) << name_of(moments);
  }
}

}  // namespace
}  // namespace lockstep
