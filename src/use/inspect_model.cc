#include "use/inspect_model.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "model/hf/source.h"
#include "model/peft_config.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string with_commas(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string bytes_text(double bytes) {
  if (bytes < 1e6) return fmt::format("{:.1f} kB", bytes / 1e3);
  return bytes < 1e9 ? fmt::format("{:.1f} MB", bytes / 1e6) : fmt::format("{:.2f} GB", bytes / 1e9);
}

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "model.layers.*.self_attn.q_proj" for "model.layers.7.self_attn.q_proj.weight".
std::string module_of(const std::string& name) {
  std::string module;
  std::string_view rest = std::string_view(name).substr(0, name.rfind('.'));
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('.'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    module += module.empty() ? "" : ".";
    module += is_number(part) ? "*" : std::string(part);
  }
  return module;
}

std::string modules_text(const std::vector<TensorSpec>& tensors) {
  struct Sum {
    int64_t tensors = 0, parameters = 0;
    size_t order = 0;
  };
  std::map<std::string, Sum> sums;
  for (const TensorSpec& tensor : tensors) {
    Sum& sum = sums.try_emplace(module_of(tensor.name), Sum{0, 0, sums.size()}).first->second;
    ++sum.tensors;
    sum.parameters += tensor.shape.numel();
  }
  std::vector<std::pair<std::string, Sum>> rows(sums.begin(), sums.end());
  std::ranges::sort(rows, {}, [](const auto& row) { return row.second.order; });
  std::string text = fmt::format("\n{:<48}{:>9}{:>18}\n", "module", "tensors", "parameters");
  for (const auto& [name, sum] : rows)
    text += fmt::format("{:<48}{:>9}{:>18}\n", name, sum.tensors, with_commas(sum.parameters));
  return text;
}

// Bytes of parameters, gradients and AdamW's moments, by train.precision.
struct PrecisionBytes {
  const char* name;
  double parameter, gradient, moments;
};
constexpr std::array<PrecisionBytes, 4> kPrecisions = {{{"fp32, bf16", 4, 4, 8},
                                                        {"bf16_pure", 2, 2, 8},
                                                        {"bf16_pure, bf16 moments", 2, 2, 4},
                                                        {"frozen in bf16 (LoRA)", 2, 0, 0}}};

std::string memory_text(int64_t parameters, int64_t workers) {
  const auto n = static_cast<double>(parameters), w = static_cast<double>(workers);
  std::string text = fmt::format(
      "\nmemory of a worker to train all of it with AdamW, without activations; ZeRO over {} workers\n"
      "{:<26}{:>12}{:>12}{:>12}{:>12}\n",
      workers, "train.precision", "ZeRO 0", "ZeRO 1", "ZeRO 2", "ZeRO 3");
  for (const PrecisionBytes& p : kPrecisions)
    text += fmt::format("{:<26}{:>12}{:>12}{:>12}{:>12}\n", p.name,
                        bytes_text(n * (p.parameter + p.gradient + p.moments)),
                        bytes_text(n * (p.parameter + p.gradient + p.moments / w)),
                        bytes_text(n * (p.parameter + (p.gradient + p.moments) / w)),
                        bytes_text(n * (p.parameter + p.gradient + p.moments) / w));
  return text +
         "workers of a host whose device is the processor hold the state "
         "once\n";
}

std::vector<TensorSpec> specs_of(const std::vector<StoredTensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const StoredTensor& tensor : tensors) specs.push_back(tensor.spec());
  return specs;
}

int64_t parameters_of(const std::vector<TensorSpec>& tensors) {
  int64_t sum = 0;
  for (const TensorSpec& tensor : tensors) sum += tensor.shape.numel();
  return sum;
}

std::string types_text(const std::vector<TensorSpec>& tensors) {
  std::map<std::string_view, int64_t> bytes;
  for (const TensorSpec& tensor : tensors) bytes[name_of(tensor.dtype)] += tensor.bytes();
  std::vector<std::string> parts;
  for (const auto& [name, count] : bytes)
    parts.push_back(fmt::format("{} in {}", bytes_text(static_cast<double>(count)), name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string line(std::string_view name, const std::string& text) {
  return fmt::format("{:<14}{}\n", name, text);
}

std::string tensors_text(const std::string& path) {
  const SafetensorsReader file(path);
  std::vector<TensorSpec> tensors;
  for (const TensorEntry& entry : file.tensors()) tensors.push_back(entry.tensor);
  std::string text = line("file", path);
  text += line("holds", fmt::format("{} tensors, {} elements, {}", tensors.size(),
                                    with_commas(parameters_of(tensors)), types_text(tensors)));
  for (const auto& [key, value] : file.header().metadata)
    text += line("metadata", fmt::format("{}: {}", key, value));
  std::ranges::sort(tensors, {}, &TensorSpec::name);
  text += "\n";
  for (const TensorSpec& tensor : tensors)
    text += fmt::format("{:<64} {}{}\n", tensor.name, name_of(tensor.dtype), to_string(tensor.shape));
  return text;
}

std::string adapter_text(const std::string& folder) {
  const PeftConfig config = read_peft_config(folder);
  const HfWeightFiles files(folder, "adapter_model");
  const std::vector<TensorSpec> tensors = specs_of(files.tensors());
  std::string text = line("adapter", folder);
  text += line("LoRA", fmt::format("rank {}, alpha {}, scale {:.4g}", config.lora.rank, config.lora.alpha,
                                   config.lora.scale()));
  text += line("modules", fmt::format("{}", fmt::join(config.lora.modules, ", ")));
  if (!config.modules_to_save.empty())
    text += line("whole", fmt::format("{}", fmt::join(config.modules_to_save, ", ")));
  if (!config.base_model.empty()) text += line("on", config.base_model);
  text += line("parameters", fmt::format("{} in {} tensors, {}", with_commas(parameters_of(tensors)),
                                         tensors.size(), types_text(tensors)));
  return text + line("to train it", fmt::format("train: {{lora: {{from: {}}}}}", folder)) +
         modules_text(tensors);
}

std::string sizes_text(const HfModel& model) {
  std::vector<std::string> parts;
  if (model.vocab > 0) parts.push_back(fmt::format("{} tokens known", with_commas(model.vocab)));
  if (model.max_positions > 0) parts.push_back(fmt::format("{} positions", with_commas(model.max_positions)));
  if (model.classes > 0) parts.push_back(fmt::format("{} classes", model.classes));
  if (model.image > 0) parts.push_back(fmt::format("images of {} pixels", model.image));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string model_text(const FolderInspection& options) {
  std::string text = line("folder", options.path);
  std::string problem;
  std::unique_ptr<HfSource> source;
  try {
    source = std::make_unique<HfSource>(options.path, HfSourceOptions{});
  } catch (const UserError& error) {
    problem = error.what();
  }
  if (source) {
    text += line("model", fmt::format("{}, {}", source->model().model_type, name_of(source->model().head)));
    text += line("sizes", sizes_text(source->model()));
  }
  std::vector<TensorSpec> tensors;
  std::unique_ptr<HfWeightFiles> opened;
  const HfWeightFiles* files = source ? source->files() : nullptr;
  if (files == nullptr) {
    try {
      opened = std::make_unique<HfWeightFiles>(options.path);
      files = opened.get();
    } catch (const UserError& error) {
      if (problem.find(error.what()) == std::string::npos) problem += fmt::format("\n{}", error.what());
    }
  }
  if (files != nullptr) {
    tensors = specs_of(files->tensors());
    text += line("weights", fmt::format("{} tensors of {} files, {}", tensors.size(), files->file_count(),
                                        types_text(tensors)));
  }
  // Tied tensors count once, and buffers are none.
  if (source) tensors = parameter_specs(source->model().build({}));
  if (!tensors.empty()) text += line("parameters", with_commas(parameters_of(tensors)));
  std::vector<std::string> beside;
  for (const auto& [name, content] : hf_companions(options.path)) beside.push_back(name);
  text += line("beside", beside.empty() ? "nothing" : fmt::format("{}", fmt::join(beside, ", ")));
  text += source ? line("supported", fmt::format("yes: model: {{hf: {}}}", options.path))
                 : line("supported", "no: " + problem);
  if (source && !source->match().unused.empty())
    text += line("not used", fmt::format("{}", fmt::join(source->match().unused, ", ")));
  if (source && !source->match().drawn.empty())
    text += line("not there", fmt::format("{}; drawn to train", fmt::join(source->match().drawn, ", ")));
  if (tensors.empty()) return text;
  return text + modules_text(tensors) + memory_text(parameters_of(tensors), options.workers);
}

}  // namespace

std::string inspect_model(const FolderInspection& options) {
  std::error_code failure;
  const fs::path path(options.path);
  if (fs::is_regular_file(path, failure)) return tensors_text(options.path);
  if (!fs::is_directory(path, failure)) throw UserError("{}: there is no such file or folder", options.path);
  if (fs::exists(path / "config.json", failure)) return model_text(options);
  if (fs::exists(path / "adapter_config.json", failure)) return adapter_text(options.path);
  throw UserError(
      "{}: there is neither a config.json nor an adapter_config.json in it; name the folder of a model "
      "or an adapter, or a .safetensors file (of runs, `lockstep show` tells)",
      options.path);
}

}  // namespace lockstep
