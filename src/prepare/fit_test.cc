#include "prepare/fit.h"

#include <gtest/gtest.h>

#include "job/parse.h"

namespace lockstep {
namespace {

constexpr const char* kJob =
    "model: {family: gpt, layers: 2, dim: 64, heads: 2, vocab: 512, seq: 64}\n"
    "data: {train: {format: synthetic, samples: 64}, hold_out: 0.1}\n"
    "train: {steps: 2, global_batch: 16, microbatch: 16, ema: 0.99, lr: {base: 1e-3}}\n";

void check(const std::vector<std::string>& overrides, Backend& backend) {
  const JobSpec spec = parse_job(kJob, "job.yaml", overrides);
  const InputSizes inputs;
  const Model model = build_job_model(spec, inputs);
  const ResolvedJob job = resolve(spec);
  const JobPlan plan = plan_job(spec, job, model, inputs, backend);
  require_fit(spec, job, plan, inputs, backend, expected_share(spec));
}

void check(const std::vector<std::string>& overrides) { check(overrides, *make_cpu_backend(1)); }

// The processor as a device with memory of its own, of which so much is free.
class DeviceWith : public Backend {
 public:
  explicit DeviceWith(int64_t free) : free_(free) {}
  std::string name() const override { return "device"; }
  std::string architecture() const override { return cpu_->architecture(); }
  int64_t available_bytes(int64_t /*workers*/) override { return free_; }
  KernelChoice choose(const Graph& graph, const Node& node) override { return cpu_->choose(graph, node); }
  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryKind kind) override {
    return cpu_->allocate(bytes, kind);
  }
  Stream& stream(StreamKind kind) override { return cpu_->stream(kind); }

 private:
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(1);
  int64_t free_;
};

std::string refusal(const std::vector<std::string>& overrides) {
  try {
    check(overrides);
  } catch (const DoesNotFit& error) {
    return error.what();
  }
  return "";
}

TEST(Fit, AJobThatFitsPasses) {
  check({});
  check({"strategy.memory=1GiB"});
}

TEST(Fit, OnADeviceItsOwnMemoryCounts) {
  DeviceWith large(int64_t{1} << 40), small(int64_t{4} << 20), silent(0);
  check({}, large);
  check({}, silent);
  check({"strategy.memory=1GiB"}, small);
  try {
    check({}, small);
    FAIL() << "it fits into 4 MiB";
  } catch (const DoesNotFit& error) {
    EXPECT_NE(std::string(error.what()).find("the GPU has free 4.0 MiB"), std::string::npos) << error.what();
  }
}

TEST(Fit, OneByteLessThanThePlanIsRefused) {
  const JobSpec spec = parse_job(kJob, "job.yaml", {});
  const auto backend = make_cpu_backend(1);
  const JobPlan plan = plan_job(spec, resolve(spec), build_job_model(spec, {}), {}, *backend);
  EXPECT_GT(plan.beside.checkpoints, 0);
  EXPECT_EQ(plan.bytes(), plan.memory.bytes() + plan.beside.bytes());
  check({fmt::format("strategy.memory={}", plan.bytes())});
  EXPECT_NE(refusal({fmt::format("strategy.memory={}", plan.bytes() - 1)}), "");
}

TEST(Fit, ARefusalListsWhatTakesLess) {
  const std::string text = refusal({"strategy.memory=31MiB"});
  EXPECT_TRUE(text.starts_with("--set: a worker would take ")) << text;
  for (const char* part :
       {"strategy.memory gives it 31.0 MiB", "planned peak", "--set train.recompute=block",
        "--set train.microbatch=", "--set train.precision=bf16 ", "--set train.precision=bf16_pure",
        "--set train.ema=0", "--set train.optimizer.name=adafactor"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Fit, WhatIsOfferedFits) {
  const std::string text = refusal({"strategy.memory=31MiB"});
  const std::string key = "train.microbatch=";
  const size_t at = text.find(key);
  ASSERT_NE(at, std::string::npos) << text;
  check({"strategy.memory=31MiB", text.substr(at, text.find(' ', at) - at)});
}

TEST(Fit, Bf16AloneCanGoFurther) {
  const std::string text = refusal({"strategy.memory=30MiB", "train.precision=bf16_pure"});
  EXPECT_EQ(text.find("--set train.precision"), std::string::npos) << text;
  EXPECT_NE(text.find("--set train.moments=bf16"), std::string::npos) << text;
}

TEST(Fit, SmallerMicrobatchesKeepTheirLeaves) {
  const std::string text = refusal({"strategy.memory=32MiB", "train.microbatch=8"});
  EXPECT_NE(text.find("--set train.microbatch=4 --set strategy.leaves=2"), std::string::npos) << text;
}

TEST(Fit, WhenNothingHelpsItSaysSo) {
  const std::string text = refusal({"strategy.memory=1MiB"});
  EXPECT_NE(text.find("not enough alone"), std::string::npos) << text;
  EXPECT_NE(text.find("still too much: use a smaller model"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep
