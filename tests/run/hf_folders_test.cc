// Folders and adapters as transformers and PEFT wrote them (tests/golden/make_hf_folders.py): what is loaded
// gives the losses that they give there.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run/train_case.h"

namespace lockstep {
namespace {

constexpr double kTolerance = 1e-5;  // of a loss, in fp32

std::string golden(const std::string& name) { return std::string(LOCKSTEP_GOLDEN "/hf_folders/") + name; }

// One step that changes nothing, and what the evaluation finds after it.
double loss_of(const std::string& model, const std::string& adapter) {
  std::string job = "model: {hf: " + golden(model) + ", seq: 12}\n";
  job += "data: {train: {format: tokens, files: " + golden("rows.bin") +
         "}, eval: {format: tokens, files: " + golden("rows.bin") + "}, index_folder: INDEX}\n";
  job += "train: {steps: 1, global_batch: 4, microbatch: 4, lr: {base: 0}, optimizer: {weight_decay: 0}";
  job += adapter.empty() ? "}\n" : ", lora: {from: " + golden(adapter) + "}}\n";
  const TestFolder index;
  job.replace(job.find("INDEX"), 5, index.path());
  const TrainCase run(job);
  run.trained("run");
  return run.metrics("run").evaluations.back().loss;
}

TEST(HfFolders, GiveTheLossesOfTransformersAndPeft) {
  const auto expected = nlohmann::json::parse(read_file(golden("expected.json")));
  for (const auto& [name, losses] : expected.items()) {
    EXPECT_NEAR(loss_of(name, ""), losses["loss"].get<double>(), kTolerance) << name;
    EXPECT_NEAR(loss_of(name, name + "-adapter"), losses["adapted"].get<double>(), kTolerance) << name;
  }
}

}  // namespace
}  // namespace lockstep
