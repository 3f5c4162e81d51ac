#include "run/export_hf.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "job/open_model.h"
#include "model/hf/adapter_names.h"
#include "model/hf/source.h"
#include "model/peft_config.h"
#include "run/merged_weights.h"
#include "run/weight_shards.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// A folder that is written under another name beside its own, and renamed when all is there.
class NewFolder {
 public:
  explicit NewFolder(const std::string& path) : path_(fs::path(path).lexically_normal()) {
    if (path_.filename().empty()) path_ = path_.parent_path();
    std::error_code failure;
    if (fs::exists(path_, failure) && !(fs::is_directory(path_, failure) && fs::is_empty(path_, failure)))
      throw UserError(
          "{} is there already and not an empty folder; a model is written into a new one: what lay "
          "there before would be taken for a part of it",
          path);
    partial_ = path_.string() + fmt::format(".partial-{}", ::getpid());
    fs::remove_all(partial_, failure);
    fs::create_directories(partial_, failure);
    if (failure) throw UserError("cannot make the folder {}: {}", path, failure.message());
  }
  ~NewFolder() {
    std::error_code ignored;
    fs::remove_all(partial_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  std::string partial() const { return partial_.string(); }
  void write(const std::string& name, const std::string& text, std::string what) {
    write_file((partial_ / name).string(), text);
    add(name, std::move(what));
  }
  void add(const std::string& name, std::string what) {
    made_.push_back(
        {(path_ / name).string(), std::move(what), static_cast<int64_t>(fs::file_size(partial_ / name))});
  }
  std::vector<ExportedFile> finish() {
    std::error_code failure;
    fs::remove(path_, failure);
    fs::rename(partial_, path_, failure);
    if (failure) throw UserError("cannot make the folder {}: {}", path_.string(), failure.message());
    return std::move(made_);
  }

 private:
  fs::path path_, partial_;
  std::vector<ExportedFile> made_;
};

// In order, each file up to the limit; a larger tensor gets one of its own.
std::vector<std::vector<TensorSpec>> shards_of(const std::vector<TensorSpec>& tensors, int64_t limit) {
  std::vector<std::vector<TensorSpec>> shards;
  int64_t filled = 0;
  for (const TensorSpec& tensor : tensors) {
    if (shards.empty() || filled + tensor.bytes() > limit) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(tensor);
    filled += tensor.bytes();
  }
  return shards;
}

void write_weights(const MergedWeights& weights, DType dtype, int64_t limit, NewFolder& folder) {
  std::vector<TensorSpec> tensors = weights.tensors();
  for (TensorSpec& tensor : tensors) tensor.dtype = dtype;
  const auto shards = shards_of(tensors, limit);
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  int64_t bytes = 0, parameters = 0;
  std::vector<WeightShard> files;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shards.size() == 1
                                 ? "model.safetensors"
                                 : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    files.push_back({name, shards[i]});
    for (const TensorSpec& tensor : shards[i]) {
      map[tensor.name] = name;
      bytes += tensor.bytes();
      parameters += tensor.shape.numel();
    }
  }
  write_shards(folder.partial(), files, [&](const TensorSpec& tensor) -> FillPart {
    const auto source = std::make_shared<const MergedTensor>(weights.open(tensor.name));
    if (source->is_plain() && source->stored() == dtype)
      return [source, size = size_of(dtype)](int64_t first, int64_t, std::span<std::byte> into) {
        source->read_stored(first * size, into);
      };
    return as_floats(dtype, [source](int64_t first, std::span<float> into) { source->read(first, into); });
  });
  for (const WeightShard& file : files) folder.add(file.name, "weights");
  if (shards.size() == 1) return;
  const nlohmann::ordered_json index = {
      {"metadata", {{"total_parameters", parameters}, {"total_size", bytes}}},
      {"weight_map", std::move(map)}};
  folder.write("model.safetensors.index.json", index.dump(2) + "\n", "which file holds which tensor");
}

const HfSource& source_of(const TrainedModel& model, const char* format) {
  if (model.spec().model.source) return *model.spec().model.source;
  throw UserError(
      "--to {}: {} was not trained from a Hugging Face folder (model.hf); --to safetensors or onnx write "
      "models of families",
      format, model.path());
}

std::string task_of(HfHead head) {
  switch (head) {
    case HfHead::kCausalLm: return "CAUSAL_LM";
    case HfHead::kSequenceClass: return "SEQ_CLS";
    case HfHead::kTokenClass: return "TOKEN_CLS";
    default: return "";
  }
}

std::string last_part(const std::string& module) { return module.substr(module.rfind('.') + 1); }

// The last parts of the layers' names, where these fit no other layer; else whole names.
std::vector<std::string> module_names(const std::vector<LinearLayer>& all,
                                      const std::vector<LinearLayer>& adapted, std::string_view type) {
  std::set<std::string> whole, last;
  for (const LinearLayer& layer : adapted) {
    whole.insert(adapter_name(type, layer.module));
    last.insert(last_part(adapter_name(type, layer.module)));
  }
  const bool others = std::ranges::any_of(all, [&](const LinearLayer& layer) {
    const std::string name = adapter_name(type, layer.module);
    return last.contains(last_part(name)) && !whole.contains(name);
  });
  const std::set<std::string>& names = others ? whole : last;
  return {names.begin(), names.end()};
}

// The module by which PEFT knows a parameter that is trained as a whole: a head by its first part where all
// of it is trained, as PEFT itself names it; anything else by its own module.
std::string saved_module(const std::string& name, const TrainedModel& model,
                         const std::set<std::string>& trained) {
  const HfSource* source = model.spec().model.source.get();
  const bool head = source != nullptr && !name.starts_with(source->model().base_prefix);
  const std::string first = name.substr(0, name.find('.') + 1);
  const bool whole = std::ranges::all_of(model.weights(), [&](const TensorSpec& tensor) {
    return !tensor.name.starts_with(first) || trained.contains(tensor.name);
  });
  return name.substr(0, head && whole ? first.size() - 1 : name.rfind('.'));
}

}  // namespace

ExportReport export_hf(const TrainedModel& model, const HfExportOptions& options) {
  const HfSource& source = source_of(model, "hf");
  if (const auto& others = source.model().ignored_prefixes; !others.empty())
    throw UserError(
        "--to hf: the original folder has parts beside the model that was trained ({}), and a folder without "
        "them is none that transformers opens; --to safetensors writes what was trained",
        fmt::join(others, ", "));
  const MergedWeights weights(model, options.merge);
  const DType dtype = options.dtype.value_or(weights.widest());
  NewFolder folder(options.out);
  folder.write("config.json", config_with_dtype(source.config(), dtype), "the model's sizes and class");
  write_weights(weights, dtype, options.shard_bytes, folder);
  for (const auto& [name, content] : source.companions())
    folder.write(name, content, "of the original model");
  return {folder.finish(), {}, {}};
}

ExportReport export_peft(const TrainedModel& model, const HfExportOptions& options) {
  const JobSpec& spec = model.spec();
  if (!uses_lora(spec)) throw UserError("--to peft: {} was not trained with LoRA (train.lora)", model.path());
  const Model base = spec.model.family->build(spec.model, model.inputs(), 1, false);
  const std::vector<LinearLayer> adapted = adapted_layers(base, spec.train.lora.modules);
  const std::string_view type = spec.model.source ? spec.model.source->model().model_type : "";
  std::vector<TensorSpec> tensors;
  std::map<std::string, std::string> sources;
  std::set<std::string> saved;
  // What is trained beside the matrices: found in the graph, where the frozen ones say so.
  std::set<std::string> trained;
  const Model evaluation = model.evaluation(1);
  for (const GraphInput& input : evaluation.graph.inputs())
    if (input.role == Role::kParam) trained.insert(evaluation.graph.name(input.value));
  for (const TensorSpec& tensor : model.weights()) {
    if (!trained.contains(tensor.name)) continue;
    const bool lora = is_lora_name(tensor.name);
    const std::string name =
        adapter_name(type, lora ? tensor.name : std::string(kAdapterPrefix) + tensor.name);
    tensors.push_back({name, options.dtype.value_or(DType::kF32), tensor.shape});
    sources[name] = tensor.name;
    if (!lora) saved.insert(saved_module(tensor.name, model, trained));
  }
  PeftConfig config;
  config.lora = lora_settings(spec);
  config.lora.modules = module_names(linear_layers(base), adapted, type);
  config.modules_to_save = {saved.begin(), saved.end()};
  config.base_model = spec.model.hf;
  const bool in_out = std::ranges::any_of(adapted, [](const LinearLayer& layer) { return layer.in_out; });
  const std::string task = spec.model.source ? task_of(spec.model.source->model().head) : "";

  NewFolder folder(options.out);
  folder.write("adapter_config.json", peft_config_text(config, in_out, task), "rank, scale and modules");
  write_shards(folder.partial(), {{"adapter_model.safetensors", tensors}},
               [&](const TensorSpec& tensor) -> FillPart {
                 const auto values =
                     std::make_shared<const std::vector<float>>(read_whole(model, sources.at(tensor.name)));
                 return as_floats(tensor.dtype, [values](int64_t first, std::span<float> into) {
                   std::copy_n(values->begin() + first, into.size(), into.begin());
                 });
               });
  folder.add("adapter_model.safetensors", "matrices");
  return {folder.finish(), {}, {}};
}

}  // namespace lockstep
