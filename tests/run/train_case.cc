#include "run/train_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

namespace lockstep {

const char* const kGptJob = R"(
name: gpt
model: {family: gpt, layers: 1, dim: 16, heads: 2, vocab: 32, seq: 8, dropout: 0.1}
data: {train: {format: synthetic, samples: 100}, eval: {samples: 8}, seed: 3}
train:
  steps: 30
  global_batch: 8
  microbatch: 2
  lr: {base: 1e-2, warmup: 5, decay: cosine}
  clip_norm: 1.0
  eval: {every: 7}
  seed: 5
checkpoint: {every: 2, keep: 2}
)";

const char* const kLlamaJob = R"(
name: llama
model: {family: llama, layers: 2, dim: 16, heads: 4, kv_heads: 2, hidden: 24, vocab: 32, seq: 8}
data: {train: {format: synthetic, samples: 100}, eval: {samples: 8}, seed: 3}
train:
  steps: 30
  global_batch: 8
  microbatch: 2
  lr: {base: 1e-2, warmup: 5, decay: cosine}
  precision: bf16
  clip_norm: 1.0
  eval: {every: 7}
  seed: 5
checkpoint: {every: 2, keep: 2}
)";

const char* const kTabularJob = R"(
name: tabular
model: {family: tabular, dim: 4, rows: 50, bottom: [8], top: [8]}
data: {train: {format: synthetic, samples: 600}, hold_out: 0.1, seed: 3}
train:
  steps: 30
  global_batch: 32
  microbatch: 8
  lr: {base: 1e-2, warmup: 5, decay: linear}
  ema: 0.9
  eval: {every: 7}
checkpoint: {every: 3, keep: 2}
)";

const char* const kEncoderJob = R"(
name: encoder
model: {family: encoder, layers: 1, dim: 16, heads: 2, vocab: 32, seq: 8, classes: 2}
data: {train: {format: synthetic, samples: 2000}, seed: 3}
train:
  steps: 12
  global_batch: 256
  microbatch: 32
  lr: {base: 1e-4, base_batch: 32, scaling: sqrt, warmup: 4, decay: linear}
  precision: bf16
)";

const char* const kResnetJob = R"(
name: resnet
model: {family: resnet, width: 4, image: 32, classes: 4}
data: {train: {format: synthetic, samples: 64}, eval: {samples: 8}, seed: 3}
train:
  steps: 12
  global_batch: 8
  microbatch: 4
  optimizer: {name: sgd}
  lr: {base: 1e-2}
  eval: {every: 4, metric: accuracy}
checkpoint: {every: 2, keep: 2}
)";

void PrintTo(const NamedJob& job, std::ostream* out) {
  constexpr std::string_view kKey = "name: ";
  const std::string_view text = job.text;
  const size_t begin = text.find(kKey) + kKey.size();
  *out << text.substr(begin, text.find('\n', begin) - begin);
}

RunSummary TrainCase::trained(const std::string& run, const std::vector<std::string>& settings,
                              const std::vector<std::string>& flags) const {
  const Ended ended = train(run, settings, flags);
  EXPECT_EQ(ended.code, 0) << ended.err.substr(ended.err.size() - std::min<size_t>(ended.err.size(), 1000));
  return has(run, "summary.json") ? summary(run) : RunSummary{};
}

std::vector<std::string> TrainCase::names(const std::string& run) const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(output(run)))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

void expect_same_steps(const Metrics& found, const Metrics& expected) {
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  EXPECT_FALSE(found.torn);
  ASSERT_EQ(found.steps.size(), expected.steps.size());
  for (size_t i = 0; i < expected.steps.size(); ++i) {
    const StepRecord &a = found.steps[i], &b = expected.steps[i];
    EXPECT_EQ(a.step, b.step);
    EXPECT_EQ(bits(a.loss), bits(b.loss)) << "loss of step " << b.step;
    EXPECT_EQ(bits(a.grad_norm), bits(b.grad_norm)) << "gradient norm of step " << b.step;
    EXPECT_EQ(bits(a.lr), bits(b.lr)) << "learning rate of step " << b.step;
    EXPECT_EQ(a.action, b.action) << "step " << b.step;
  }
}

void expect_same_evaluations(const Metrics& found, const Metrics& expected) {
  ASSERT_EQ(found.evaluations.size(), expected.evaluations.size());
  for (size_t i = 0; i < expected.evaluations.size(); ++i) {
    EvalRecord a = found.evaluations[i];
    a.seconds = expected.evaluations[i].seconds;
    EXPECT_EQ(a, expected.evaluations[i]) << "evaluation after step " << expected.evaluations[i].step;
  }
}

}  // namespace lockstep
