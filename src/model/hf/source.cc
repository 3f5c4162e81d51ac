#include "model/hf/source.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kLongestConfig = 16 << 20;

std::string config_path(const std::string& folder) {
  std::error_code failure;
  if (!std::filesystem::is_directory(folder, failure)) throw UserError("{}: there is no such folder", folder);
  if (std::filesystem::exists(folder + "/adapter_config.json", failure) &&
      !std::filesystem::exists(folder + "/config.json", failure))
    throw UserError(
        "{} holds an adapter and no model; name the model here, and the adapter as train.lora.from", folder);
  return file_inside(folder, "config.json");
}

bool is_classifier(HfHead head) {
  return head == HfHead::kSequenceClass || head == HfHead::kTokenClass || head == HfHead::kImageClass;
}

Records records_of(HfHead head) {
  switch (head) {
    case HfHead::kSequenceClass: return Records::kText;
    case HfHead::kImageClass: return Records::kImages;
    default: return Records::kTokens;
  }
}

// The class of transformers that has this head.
std::string_view class_of(const HfModel& model) {
  for (const HfFamily* family : hf_families())
    if (family->model_type == model.model_type)
      for (const auto& [name, head] : family->architectures)
        if (head == model.head) return name;
  throw InternalError("{} has no head for {}", model.model_type, name_of(model.head));
}

void set_labels(Json& config, int64_t classes) {
  config.erase("num_labels");
  if (config.contains("id2label") && static_cast<int64_t>(config["id2label"].size()) == classes) return;
  Json names = Json::object(), numbers = Json::object();
  for (int64_t i = 0; i < classes; ++i) {
    names[std::to_string(i)] = fmt::format("LABEL_{}", i);
    numbers[fmt::format("LABEL_{}", i)] = i;
  }
  config["id2label"] = std::move(names);
  config["label2id"] = std::move(numbers);
}

Json parsed(const std::string& text) { return Json::parse(text); }
std::string dumped(const Json& config) {
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

HfSource::HfSource(std::string folder, const HfSourceOptions& options) : folder_(std::move(folder)) {
  const std::string path = config_path(folder_);
  config_ = read_file(path, kLongestConfig);
  HfConfig::parse(config_, path);  // refuses what is no JSON object before it is changed
  if (options.classes) {
    Json config = parsed(config_);
    set_labels(config, *options.classes);
    config_ = dumped(config);
  }
  make_model(options);
  if (options.weights) {
    files_ =
        std::make_unique<HfWeightFiles>(options.weights_folder.empty() ? folder_ : options.weights_folder);
    const auto match = [&] {
      return match_weights(*files_, *model_, parameter_specs(model_->build({})),
                           is_classifier(model_->head) || options.head.has_value());
    };
    match_ = match();
    if (match_.untied) {
      Json config = parsed(config_);
      config["tie_word_embeddings"] = false;
      config_ = dumped(config);
      make_model(options);
      match_ = match();
    }
  }
  Json config = parsed(config_);
  const std::string_view own = class_of(*model_);
  if (!config.contains("architectures") || config["architectures"] != Json::array({own})) {
    config["architectures"] = Json::array({own});
    config_ = dumped(config);
  }
  family_ = make_family();
}

void HfSource::make_model(const HfSourceOptions& options) {
  const HfConfig config = HfConfig::parse(config_, config_path(folder_));
  model_ = options.head ? make_hf_model(config, *options.head) : make_hf_model(config);
}

DType HfSource::stored(std::string_view parameter) const {
  const auto found = std::ranges::find(match_.taken, parameter, &WeightMatch::Taken::name);
  return found == match_.taken.end() ? DType::kF32 : found->from->spec().dtype;
}

const StoredTensor* HfSource::find(const TensorSpec& parameter) const {
  const auto found = std::ranges::find(match_.taken, parameter.name, &WeightMatch::Taken::name);
  if (found == match_.taken.end()) return nullptr;
  const TensorSpec& stored = found->from->spec();
  return stored.dtype == parameter.dtype && stored.shape == parameter.shape ? found->from : nullptr;
}

ModelFamily HfSource::make_family() const {
  ModelFamily family;
  family.name = model_->model_type;
  family.records = records_of(model_->head);
  family.check = [this](const ModelSizes& sizes) -> std::optional<SizeProblem> {
    if (model_->max_positions == 0 || sizes.seq <= model_->max_positions) return std::nullopt;
    return SizeProblem{"seq", sizes.seq,
                       fmt::format("is more than the {} positions of the model in {}; use that or less",
                                   model_->max_positions, folder_)};
  };
  family.build = [this](const ModelSizes& sizes, const InputSizes& inputs, int64_t batch, bool training) {
    const bool text = records_of(model_->head) == Records::kText;
    return model_->build({.batch = batch,
                          .seq = std::max<int64_t>(sizes.seq, 1),
                          .training = training,
                          .documents = inputs.documents,
                          .padded = inputs.padded && text});
  };
  return family;
}

std::vector<TensorSpec> parameter_specs(const Model& model) {
  std::vector<TensorSpec> tensors;
  for (const GraphInput& input : model.graph.inputs()) {
    if (input.role != Role::kParam && input.role != Role::kFrozen) continue;
    const Type& type = model.graph.type(input.value);
    tensors.push_back({model.graph.name(input.value), type.dtype, type.shape});
  }
  return tensors;
}

std::string config_with_dtype(const std::string& config, DType dtype) {
  Json json = parsed(config);
  const char* const name = dtype == DType::kBF16 ? "bfloat16" : dtype == DType::kF16 ? "float16" : "float32";
  const bool older = json.contains("torch_dtype") && !json.contains("dtype");
  json[older ? "torch_dtype" : "dtype"] = name;
  return dumped(json);
}

}  // namespace lockstep
