// Whole models against PyTorch: loss, every parameter's gradient, and after three AdamW steps the parameters
// and the running statistics.
// The golden states come from make_golden.py beside this file.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "model/resnet.h"
#include "model/tabular.h"
#include "tensor_error.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

struct Golden {
  std::map<std::string, std::string> bytes;

  explicit Golden(const std::string& name) {
    const std::string file = read_file(std::string(LOCKSTEP_GOLDEN) + "/" + name + ".safetensors");
    uint64_t header_size = 0;
    std::memcpy(&header_size, file.data(), sizeof header_size);
    const auto header = nlohmann::json::parse(file.substr(8, header_size));
    for (const auto& [key, entry] : header.items()) {
      const size_t begin = entry["data_offsets"][0];
      const size_t end = entry["data_offsets"][1];
      bytes[key] = file.substr(8 + header_size + begin, end - begin);
    }
  }

  std::vector<float> floats(const std::string& key) const {
    const std::string& raw = bytes.at(key);
    std::vector<float> values(raw.size() / sizeof(float));
    std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }
};

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

// Root mean square of the difference over that of the tensor. For parameters after Adam steps: an element
// whose gradient is nearly zero moves a whole step in the direction of its rounding, which says nothing about
// the rest.
double rms_error(const std::vector<float>& got, const std::vector<float>& want) {
  double difference = 0;
  double size = 1e-12;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - want[i], 2);
    size += std::pow(static_cast<double>(want[i]), 2);
  }
  return std::sqrt(difference / size);
}

void check(const std::string& name, const Model& model, double tolerance, double after_tolerance) {
  const Golden golden(name);
  const auto backend = make_cpu_backend(2);
  TrainStep train(model, *backend, {});
  for (const auto& [key, bytes] : golden.bytes) {
    if (key.starts_with("param.")) train.set_param(key.substr(6), golden.floats(key));
    if (key.starts_with("input."))
      train.set_input(key.substr(6), bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  const StepResult first = train.run(1e-3);
  EXPECT_NEAR(first.loss, golden.floats("loss")[0], 1e-5 * std::fabs(golden.floats("loss")[0])) << name;
  for (const StateTensor& entry : train.params()) {
    const std::vector<float> got = train.grad(entry.name);
    // Softmax does not see a shift of all keys: what is left is rounding, of us and of PyTorch.
    if (entry.name.ends_with("key.bias")) {
      for (const float x : got) EXPECT_LT(std::fabs(x), 1e-7) << name << ": gradient of " << entry.name;
      continue;
    }
    EXPECT_EQ(testing::compare(doubles(got), doubles(golden.floats("grad." + entry.name)), tolerance), "")
        << name << ": gradient of " << entry.name;
  }
  train.run(1e-3);
  train.run(1e-3);
  for (const StateTensor& entry : train.params()) {
    // Adam turns the sign of a key bias's noise into whole steps: nothing to compare.
    if (entry.name.ends_with("key.bias") || entry.name.ends_with("c_attn.bias")) continue;
    EXPECT_LT(rms_error(train.param(entry.name), golden.floats("after." + entry.name)), after_tolerance)
        << name << ": " << entry.name << " after three steps";
  }
  for (const StateTensor& entry : train.state().statistics()) {
    std::vector<float> values(static_cast<size_t>(entry.shape.numel()));
    backend->download(values.data(), entry.data, entry.bytes());
    EXPECT_LT(rms_error(values, golden.floats("running." + entry.name)), after_tolerance)
        << name << ": " << entry.name << " after three steps";
  }
}

TEST(Golden, Gpt) { check("gpt", build_gpt({2, 24, 3, 50, 3, 17, 0.0}), 2e-5, 2e-4); }

TEST(Golden, Llama) {
  const LlamaSizes sizes{
      .layers = 2, .dim = 24, .heads = 6, .kv_heads = 2, .hidden = 40, .vocab = 50, .batch = 3, .seq = 17};
  check("llama", build_llama(sizes), 2e-5, 2e-4);
}

// One key head for all, another base of the rotary positions, and the embedding's table as the head.
TEST(Golden, LlamaTied) {
  const LlamaSizes sizes{.layers = 2,
                         .dim = 24,
                         .heads = 3,
                         .kv_heads = 1,
                         .hidden = 40,
                         .vocab = 50,
                         .batch = 3,
                         .seq = 17,
                         .rope_theta = 500,
                         .norm_epsilon = 1e-3,
                         .tied = true};
  check("llama_tied", build_llama(sizes), 2e-5, 2e-4);
}

TEST(Golden, Encoder) {
  check("encoder", build_encoder({2, 24, 3, 96, 40, 3, 4, 11, 0.0, false}), 2e-5, 2e-4);
}

TEST(Golden, Tabular) { check("tabular", build_tabular({3, 11, 8, 5, {16, 12}, {16, 12}, 13}), 2e-5, 2e-4); }

// Batch norm over few positions, and relus that switch: small differences grow from step to step.
TEST(Golden, Resnet) { check("resnet", build_resnet({18, 4, 64, 7, 4}), 2e-4, 1e-2); }

}  // namespace
}  // namespace lockstep
