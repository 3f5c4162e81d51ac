// lockstep inspect: what it says of folders, adapters and files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/hf/folder_testing.h"
#include "model/peft_config.h"
#include "run/lockstep_process.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

Ended inspect(const TestFolder& folder, const std::string& path) {
  return LockstepProcess({"inspect", path}, folder.path("log")).wait();
}

void expect_says(const Ended& ended, const std::vector<std::string>& parts) {
  EXPECT_EQ(ended.code, 0) << ended.err;
  for (const std::string& part : parts)
    EXPECT_NE(ended.out.find(part), std::string::npos) << part << "\n" << ended.out;
}

TEST(Inspect, TellsWhatAFolderHolds) {
  const TestFolder folder, log;
  testing::write_tiny_folder(folder);
  expect_says(inspect(log, folder.path()),
              {"llama, causal LM", "32 tokens known, 16 positions", "21 tensors of 1 files",
               "supported     yes: model: {hf: ", "model.layers.*.self_attn.q_proj", "ZeRO 3"});
}

TEST(Inspect, SaysWhyAModelIsNotSupported) {
  const TestFolder folder, log;
  testing::write_tiny_folder(folder);
  auto config = testing::tiny_llama_config();
  config["model_type"] = "mamba";
  folder.write("config.json", config.dump());
  expect_says(inspect(log, folder.path()), {"supported     no: ", "mamba", "21 tensors of 1 files"});
  fs::remove(folder.path("model.safetensors"));
  folder.write("pytorch_model.bin", "PK");
  expect_says(inspect(log, folder.path()), {"mamba", "which is a pickle"});
}

TEST(Inspect, ListsTheTensorsOfAFile) {
  const TestFolder folder;
  testing::write_tiny_folder(folder, testing::tiny_llama_config(), DType::kBF16);
  expect_says(inspect(folder, folder.path("model.safetensors")),
              {"21 tensors", "format: pt", "model.layers.1.mlp.gate_proj.weight", "bf16[24,16]"});
}

TEST(Inspect, TellsWhatAnAdapterHolds) {
  const TestFolder folder;
  PeftConfig config;
  config.lora = {.rank = 2, .alpha = 8, .modules = {"q_proj"}};
  folder.write("adapter_config.json", peft_config_text(config, false, "CAUSAL_LM"));
  testing::write_tiny_file(folder.path(), "adapter_model.safetensors",
                           {{lora_a_name("model.layers.0.self_attn.q_proj"), DType::kF32, {2, 16}},
                            {lora_b_name("model.layers.0.self_attn.q_proj"), DType::kF32, {16, 2}}});
  expect_says(inspect(folder, folder.path()),
              {"rank 2, alpha 8, scale 4", "64 in 2 tensors", "lora: {from: "});
}

TEST(Inspect, NothingToLookAtIsAnError) {
  const TestFolder folder;
  const Ended ended = inspect(folder, folder.path());
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("neither a config.json nor an adapter_config.json"), std::string::npos)
      << ended.err;
}

// The files are as long as LLaMA 2's, and hold nothing on the disk.
TEST(Inspect, OpensSevenBillionParametersByTheirHeaders) {
  const TestFolder folder, log;
  auto config = testing::tiny_llama_config();
  config["vocab_size"] = 32000;
  config["hidden_size"] = 4096;
  config["intermediate_size"] = 11008;
  config["num_hidden_layers"] = 32;
  config["num_attention_heads"] = config["num_key_value_heads"] = 32;
  config["max_position_embeddings"] = 4096;
  folder.write("config.json", config.dump());
  const std::vector<TensorSpec> tensors = testing::tensors_of_config(config, DType::kBF16);
  nlohmann::ordered_json map;
  for (size_t i = 0; i < 3; ++i) {
    const std::string name = fmt::format("model-{:05}-of-00003.safetensors", i + 1);
    std::vector<TensorSpec> part;
    for (size_t t = i; t < tensors.size(); t += 3) {
      part.push_back(tensors[t]);
      map[tensors[t].name] = name;
    }
    const SafetensorsHeader header = plan_safetensors(part, {{"format", "pt"}});
    folder.write(name, safetensors_header_bytes(header));
    fs::resize_file(folder.path(name), static_cast<uintmax_t>(header.file_bytes()));
  }
  folder.write("model.safetensors.index.json", nlohmann::ordered_json({{"weight_map", map}}).dump());
  expect_says(inspect(log, folder.path()),
              {"291 tensors of 3 files, 13.48 GB in bf16", "6,738,415,616", "107.81 GB"});
}

}  // namespace
}  // namespace lockstep
