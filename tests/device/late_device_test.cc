// Training on a device that has memory of its own and runs late gives the processor's bits.
#include <gtest/gtest.h>

#include "comm/ranks_testing.h"
#include "device/late_backend.h"
#include "model/encoder.h"
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

constexpr int64_t kSteps = 3;
constexpr int64_t kMicrobatches = 6;

struct Outcome {
  std::string hash;
  double loss = 0;
  double norm = 0;
  int64_t count = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome train_on(Backend& backend, const Model& model, TrainOptions options, Group* group) {
  options.microbatches = kMicrobatches;
  options.leaves = 3;
  options.ema = 0.9;
  options.seed = 5;
  options.reduce.bucket_bytes = 4096;
  options.workers = group == nullptr ? 1 : group->size();
  TrainStep train(model, backend, options, group);
  StepResult result;
  for (int64_t step = 1; step <= kSteps; ++step)
    result =
        train.run(1e-2, [&](int64_t m) { set_synthetic_inputs(train, model, 11, step * kMicrobatches + m); });
  std::string hash = train.weights_sha256();
  // The weights say enough where every worker has a piece of the rest.
  if (options.zero == 0)
    hash += sha256_of(backend, train.state().optimizer()) + sha256_of(backend, train.state().averages());
  return {hash, result.loss, result.grad_norm, result.count};
}

void expect_the_same_bits(const Model& model, const TrainOptions& options = {}) {
  const auto cpu = make_cpu_backend(2);
  const Outcome want = train_on(*cpu, model, options, nullptr);
  EXPECT_EQ(train_on(*testing::make_late_backend(2), model, options, nullptr), want);
  std::vector<Outcome> all(3);
  testing::on_threads(LeafSplit::search(3, 3), [&](Group& group) {
    all[static_cast<size_t>(group.rank())] = train_on(*testing::make_late_backend(1), model, options, &group);
  });
  for (const Outcome& outcome : all) EXPECT_EQ(outcome, want);
}

TEST(LateDevice, Gpt) { expect_the_same_bits(build_gpt({2, 48, 3, 101, 2, 17, 0.1})); }

TEST(LateDevice, GptInBf16WithStochasticRounding) {
  TrainOptions options;
  options.passes.compute = DType::kBF16;
  options.passes.stochastic_rounding = true;
  expect_the_same_bits(build_gpt({2, 48, 3, 101, 2, 17, 0.1}), options);
}

TEST(LateDevice, PureBf16WithRunningStatistics) {
  TrainOptions options;
  options.passes.compute = DType::kBF16;
  options.optimizer.moments = DType::kBF16;
  expect_the_same_bits(stored_in(DType::kBF16, build_gpt({2, 48, 3, 101, 2, 17, 0.1})), options);
  expect_the_same_bits(stored_in(DType::kBF16, build_resnet({18, 4, 32, 5, 2})), options);
}

TEST(LateDevice, Llama) {
  expect_the_same_bits(build_llama({.layers = 2,
                                    .dim = 48,
                                    .heads = 6,
                                    .kv_heads = 2,
                                    .hidden = 100,
                                    .vocab = 101,
                                    .batch = 2,
                                    .seq = 17,
                                    .tied = true}));
}

TEST(LateDevice, Encoder) { expect_the_same_bits(build_encoder({2, 48, 3, 192, 61, 3, 2, 19, 0.1, true})); }

TEST(LateDevice, TabularWithRowsCaughtUpLate) {
  expect_the_same_bits(build_tabular({3, 301, 16, 5, {33, 17}, {40, 20}, 23}));
}

TEST(LateDevice, ResnetWithRunningStatistics) { expect_the_same_bits(build_resnet({18, 4, 32, 5, 2})); }

TEST(LateDevice, WhereWorkersOwnPiecesOfTheState) {
  const Model model = build_gpt({2, 48, 3, 101, 2, 17, 0.1});
  for (const int zero : {1, 2, 3}) {
    TrainOptions options;
    options.zero = zero;
    expect_the_same_bits(model, options);
    options.passes.compute = DType::kBF16;
    expect_the_same_bits(stored_in(DType::kBF16, model), options);
  }
}

// What makes the tests above mean something.
TEST(LateDeviceDeathTest, TheHostFaultsOnItsMemory) {
  const auto backend = testing::make_late_backend(1);
  const auto buffer = backend->allocate(64);
  EXPECT_DEATH(*static_cast<volatile char*>(buffer->data()) = 1, "");
}

TEST(LateDevice, NothingRunsBeforeSomebodyWaits) {
  const auto backend = testing::make_late_backend(1);
  const auto pinned = backend->allocate(8, MemoryKind::kPinned);
  const auto device = backend->allocate(8);
  auto* const value = static_cast<int64_t*>(pinned->data());
  *value = 7;
  backend->compute().copy(device->data(), value, sizeof *value);
  const EventPtr copied = backend->compute().record();
  *value = 8;  // too early, as the copy shows
  copied->wait();
  int64_t seen = 0;
  backend->download(&seen, device->data(), sizeof seen);
  EXPECT_EQ(seen, 8);
}

}  // namespace
}  // namespace lockstep
