// A small Hugging Face folder for tests: a llama of two layers whose weights are drawn, in one file or
// several, in the type that is asked for.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/philox.h"
#include "base/test_folder.h"
#include "model/hf/source.h"
#include "safetensors/writer.h"

namespace lockstep::testing {

inline nlohmann::ordered_json tiny_llama_config() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", 32},
          {"hidden_size", 16},
          {"intermediate_size", 24},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"max_position_embeddings", 16},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 10000.0},
          {"hidden_act", "silu"},
          {"tie_word_embeddings", false},
          {"torch_dtype", "float32"}};
}

// Values of a tensor: a function of its name, around 1 for norms.
inline std::vector<float> tiny_values(const TensorSpec& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.numel()));
  const uint64_t stream = std::hash<std::string>()(tensor.name);
  const bool norm = tensor.shape.rank() == 1;
  Philox(7, stream).fill_normal(values, norm ? 1.0f : 0.0f, norm ? 0.1f : 0.2f, 0);
  return values;
}

inline void write_tiny_file(const std::string& folder, const std::string& name,
                            const std::vector<TensorSpec>& tensors,
                            const std::map<std::string, std::vector<float>>& given = {}) {
  SafetensorsWriter writer(folder, name, tensors, {{"format", "pt"}});
  for (const TensorEntry& entry : writer.tensors()) {
    const auto found = given.find(entry.tensor.name);
    const std::vector<float> values = found == given.end() ? tiny_values(entry.tensor) : found->second;
    std::vector<std::byte> bytes(static_cast<size_t>(entry.tensor.bytes()));
    for (size_t i = 0; i < values.size(); ++i)
      write_element(entry.tensor.dtype, bytes.data(), static_cast<int64_t>(i),
                    static_cast<double>(values[i]));
    writer.append(bytes);
  }
  writer.finish();
}

// The tensors that the model of a config.json has.
inline std::vector<TensorSpec> tensors_of_config(const nlohmann::ordered_json& config,
                                                 DType dtype = DType::kF32) {
  std::vector<TensorSpec> tensors =
      parameter_specs(make_hf_model(HfConfig::parse(config.dump(), "config.json"))->build({}));
  for (TensorSpec& tensor : tensors) tensor.dtype = dtype;
  return tensors;
}

// config.json and model.safetensors.
inline void write_tiny_folder(const TestFolder& folder,
                              const nlohmann::ordered_json& config = tiny_llama_config(),
                              DType dtype = DType::kF32) {
  folder.write("config.json", config.dump(2));
  write_tiny_file(folder.path(), "model.safetensors", tensors_of_config(config, dtype));
}

// The same with an index and so many files.
inline void write_tiny_shards(const TestFolder& folder, size_t count, DType dtype = DType::kF32) {
  const auto config = tiny_llama_config();
  folder.write("config.json", config.dump(2));
  const std::vector<TensorSpec> tensors = tensors_of_config(config, dtype);
  nlohmann::ordered_json map;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, count);
    std::vector<TensorSpec> part;
    for (size_t t = i; t < tensors.size(); t += count) {
      part.push_back(tensors[t]);
      map[tensors[t].name] = name;
    }
    write_tiny_file(folder.path(), name, part);
  }
  folder.write("model.safetensors.index.json",
               nlohmann::ordered_json({{"metadata", {{"total_size", 1}}}, {"weight_map", map}}).dump());
}

}  // namespace lockstep::testing
