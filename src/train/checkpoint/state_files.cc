#include "train/checkpoint/state_files.h"

#include <string_view>
#include <unordered_map>

#include "train/checkpoint/checkpoint_writer.h"

namespace lockstep {
namespace {

StateFile state_file(const char* name, const std::vector<StateTensor>& tensors,
                     const std::set<std::string>& left_out) {
  StateFile file{.name = name, .header = {}, .tensors = {}};
  std::vector<TensorSpec> specs;
  std::unordered_map<std::string_view, const StateTensor*> by_name;
  for (const StateTensor& tensor : tensors) {
    if (left_out.contains(tensor.name)) continue;
    specs.push_back({tensor.name, tensor.dtype, tensor.shape});
    by_name[tensor.name] = &tensor;
  }
  file.header = plan_safetensors(std::move(specs), TensorFile().metadata);
  for (const TensorEntry& entry : file.header.tensors) file.tensors.push_back(by_name.at(entry.tensor.name));
  return file;
}

}  // namespace

std::vector<StateFile> state_files(const TrainState& state, const std::set<std::string>& left_out,
                                   bool weights_alone) {
  std::vector<StateFile> files;
  const auto add = [&](const char* name, const std::vector<StateTensor>& tensors,
                       const std::set<std::string>& without = {}) {
    StateFile file = state_file(name, tensors, without);
    if (!file.tensors.empty()) files.push_back(std::move(file));
  };
  add(left_out.empty() ? kModelFile : kTrainedFile, state.model(), left_out);
  if (!weights_alone) add(kOptimizerFile, state.optimizer());
  add(kAverageFile, state.averages());
  if (!weights_alone) add(kResidualFile, state.residuals());
  return files;
}

}  // namespace lockstep
