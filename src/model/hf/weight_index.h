// model.safetensors.index.json: which of a folder's files holds which tensor.
//
//   {"metadata": {"total_size": 26}, "weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors",
//   ...}}
//
// Nothing in it is trusted: files are named by bare names of the same folder, and every name stands once.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace lockstep {

// More than any model has, and few enough to hold.
inline constexpr size_t kMostIndexedTensors = 1'000'000;
inline constexpr size_t kMostWeightFiles = 4096;

struct WeightIndex {
  std::map<std::string, std::string> files;  // by the tensor's name
};

// Throws UserError that begins with `path`.
WeightIndex parse_weight_index(std::string_view text, const std::string& path);

// Whether a name stands for a file of the folder it is written in: no way up, down or to the root.
bool is_bare_file_name(std::string_view name);

}  // namespace lockstep
