#include "job/open_model.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "model/hf/adapter_names.h"
#include "model/hf/preprocessor.h"
#include "model/hf/source.h"
#include "model/peft_config.h"

namespace lockstep {
namespace {

// Rows of tokens where the job does not say how long they are: models are made for up to 2^20 positions.
constexpr int64_t kUsualTokens = 1024;

void derive(JobSpec& spec, const char* path, std::string how) {
  spec.origins[path] = {.kind = Origin::Kind::kDerived, .how = std::move(how)};
}

void take_sizes(JobSpec& spec) {
  const HfModel& model = spec.model.source->model();
  ModelSpec& sizes = spec.model;
  sizes.family = &spec.model.source->family();
  sizes.vocab = model.vocab;
  sizes.image = model.image;
  if (!spec.origins.contains("model.classes") && model.classes > 0) {
    sizes.classes = model.classes;
    derive(spec, "model.classes", "config.json");
  }
  if (!spec.origins.contains("model.seq") && sizes.family->records != Records::kImages) {
    sizes.seq = std::min(model.max_positions, kUsualTokens);
    derive(spec, "model.seq", fmt::format("the model takes {}", model.max_positions));
  }
}

// Images as the model was trained on them, where the job does not say otherwise.
void take_preprocessor(JobSpec& spec) {
  const std::optional<DataFormat>& format = spec.data.train.format;
  if (format != DataFormat::kImages && format != DataFormat::kTar) return;
  const std::optional<HfPreprocessor> wanted = read_preprocessor(spec.model.source->folder());
  if (!wanted) return;
  if (wanted->size != spec.model.image)
    throw UserError("{} makes images of {} pixels, and the model of config.json takes {}; make them agree",
                    wanted->path, wanted->size, spec.model.image);
  ImagesSpec& images = spec.data.images;
  const auto take = [&](const char* path, auto& own, auto theirs) {
    if (!spec.is_default(path)) return;
    own = std::move(theirs);
    derive(spec, path, "preprocessor_config.json");
  };
  take("data.images.mean", images.mean, std::vector<double>(wanted->mean.begin(), wanted->mean.end()));
  take("data.images.deviation", images.deviation,
       std::vector<double>(wanted->deviation.begin(), wanted->deviation.end()));
  take("data.images.fit", images.fit, wanted->stretched ? ImageFit::kStretch : ImageFit::kCrop);
  if (!wanted->stretched) take("data.images.resize", images.resize, std::optional(wanted->short_side));
}

void open_folder(JobSpec& spec, const std::string& folder, bool weights, const std::string& base = {}) {
  HfSourceOptions options{.weights = weights, .weights_folder = base};
  if (spec.model.head) options.head = static_cast<HfHead>(*spec.model.head);
  if (spec.origins.contains("model.classes")) options.classes = spec.model.classes;
  try {
    spec.model.source = std::make_shared<HfSource>(folder, options);
  } catch (const UserError& error) {
    throw UserError("{}: model.hf: {}", spec.where("model.hf"), error.what());
  }
  if (options.classes && spec.model.source->model().classes == 0)
    throw UserError(
        "{}: model.classes is for heads that classify, and that of {} does not; remove it, or write "
        "model.head: sequence_classification",
        spec.where("model.classes"), folder);
  take_sizes(spec);
  take_preprocessor(spec);
}

std::string_view model_type_of(const JobSpec& spec) {
  return spec.model.source ? spec.model.source->model().model_type : std::string_view();
}

// The layers that an adapter has matrices for, by the names of the model's files.
std::vector<std::string> modules_in(const HfWeightFiles& files, const JobSpec& spec) {
  const Model model = spec.model.source ? spec.model.source->model().build({})
                                        : spec.model.family->build(spec.model, {}, 1, true);
  std::vector<std::string> modules;
  for (const LinearLayer& layer : linear_layers(model))
    if (files.find(lora_a_name(adapter_name(model_type_of(spec), layer.module))) != nullptr)
      modules.push_back(layer.module);
  if (modules.empty())
    throw UserError("{}: none of its matrices belongs to a layer of this model", files.folder());
  return modules;
}

// What PEFT says, made good by what the adapter holds: it names heads that only other models have, and
// modules by expressions or as they are called in memory.
PeftConfig adapter_of(const JobSpec& spec) {
  PeftConfig adapter = read_peft_config(spec.train.lora.from);
  const HfWeightFiles files(spec.train.lora.from, "adapter_model");
  std::erase_if(adapter.modules_to_save, [&](const std::string& module) {
    const std::string begin = fmt::format("{}{}.", kAdapterPrefix, module);
    return std::ranges::none_of(
        files.tensors(), [&](const StoredTensor& tensor) { return tensor.spec().name.starts_with(begin); });
  });
  const bool renamed = adapter_name(model_type_of(spec), "encoder.layer.") != "encoder.layer.";
  if (adapter.lora.modules.empty() || renamed) adapter.lora.modules = modules_in(files, spec);
  return adapter;
}

// Each is the adapter's, unless the job says the same.
void take_adapter(JobSpec& spec) {
  LoraSpec& lora = spec.train.lora;
  PeftConfig adapter;
  try {
    adapter = adapter_of(spec);
  } catch (const UserError& error) {
    throw UserError("{}: train.lora.from: {}", spec.where("train.lora.from"), error.what());
  }
  const auto take = [&](const char* path, auto& own, const auto& theirs) {
    if (!spec.is_default(path) && own != theirs)
      throw UserError("{}: {} is not what {} says; remove it, or begin without train.lora.from",
                      spec.where(path), path, adapter.path);
    own = theirs;
    derive(spec, path, lora.from);
  };
  take("train.lora.rank", lora.rank, std::optional<int64_t>(adapter.lora.rank));
  take("train.lora.alpha", lora.alpha, adapter.lora.alpha);
  take("train.lora.rslora", lora.rslora, adapter.lora.rank_stabilised);
  take("train.lora.modules", lora.modules, adapter.lora.modules);
  std::vector<std::string> saved;
  for (const std::string& module : adapter.modules_to_save) saved.push_back(module + ".*");
  if (!saved.empty()) take("train.lora.also_train", lora.also_train, saved);
}

}  // namespace

void open_model(JobSpec& spec) {
  if (!spec.model.hf.empty()) open_folder(spec, spec.model.hf, spec.model.init == ModelInit::kPretrained);
  if (!spec.train.lora.from.empty()) take_adapter(spec);
}

std::optional<BaseFolder> open_kept_model(JobSpec& spec, const std::string& checkpoint) {
  if (spec.model.hf.empty()) return std::nullopt;
  const std::string path = (std::filesystem::path(checkpoint) / kBaseFile).string();
  if (!std::filesystem::exists(path)) {
    open_folder(spec, checkpoint, true);
    return std::nullopt;
  }
  BaseFolder base = parse_base_folder(read_file(path), path);
  // Where it was, or where the job says that it is.
  std::error_code failure;
  for (const std::string& folder : {base.folder, spec.model.hf})
    if (std::filesystem::is_directory(folder, failure)) {
      open_folder(spec, checkpoint, true, folder);
      return base;
    }
  throw UserError(
      "{} holds what was trained alone, beside the weights of {}; that folder is gone: put it there again (a "
      "link will do)",
      checkpoint, base.folder);
}

bool uses_lora(const JobSpec& spec) { return spec.train.lora.rank.has_value(); }

LoraSettings lora_settings(const JobSpec& spec) {
  const LoraSpec& lora = spec.train.lora;
  return {.rank = lora.rank.value_or(0),
          .alpha = lora.alpha,
          .dropout = lora.dropout,
          .rank_stabilised = lora.rslora,
          .start = static_cast<LoraStart>(lora.init),
          .modules = lora.modules};
}

}  // namespace lockstep
