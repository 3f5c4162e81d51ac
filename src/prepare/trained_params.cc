#include "prepare/trained_params.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/error.h"
#include "job/open_model.h"
#include "model/frozen_params.h"
#include "model/hf/source.h"
#include "model/lora.h"

namespace lockstep {
namespace {

void require_fitting(const JobSpec& spec, const char* key, const std::vector<std::string>& patterns,
                     const Model& model) {
  for (const std::string& pattern : patterns)
    if (std::ranges::none_of(model.params,
                             [&](const ParamInit& param) { return fits_pattern({pattern}, param.name); }))
      throw UserError("{}: {} names '{}', which fits no parameter of this model; the first is {}",
                      spec.where(key), key, pattern, model.params.front().name);
}

void check_together(const JobSpec& spec) {
  const TrainSpec& train = spec.train;
  if (!train.freeze.empty() && !train.train_only.empty())
    throw UserError("{}: train.freeze and train.train_only ({}) both say what is trained; keep one of them",
                    spec.where("train.freeze"), spec.where("train.train_only"));
  if (uses_lora(spec) && (!train.freeze.empty() || !train.train_only.empty())) {
    const char* key = train.freeze.empty() ? "train.train_only" : "train.freeze";
    throw UserError(
        "{}: with train.lora all but its matrices are frozen already; remove {}, or name what else is "
        "trained in train.lora.also_train",
        spec.where(key), key);
  }
  if (uses_lora(spec)) return;
  for (const char* key : {"train.lora.alpha", "train.lora.dropout", "train.lora.modules",
                          "train.lora.also_train", "train.lora.rslora", "train.lora.init"})
    if (!spec.is_default(key))
      throw UserError("{}: train.lora does not say how wide its matrices are; write train.lora.rank: 16",
                      spec.where(key));
}

// A head of classes is new to most models, and means nothing before it is trained.
bool is_new_head(const JobSpec& spec, const std::string& name) {
  const HfSource* source = spec.model.source.get();
  if (source == nullptr || source->model().classes == 0 || !spec.train.lora.also_train.empty()) return false;
  return !name.starts_with(source->model().base_prefix);
}

}  // namespace

bool fits_pattern(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

Model with_trained_params(const JobSpec& spec, Model model, bool training) {
  const TrainSpec& train = spec.train;
  check_together(spec);
  const bool lora = uses_lora(spec);
  if (!lora && train.freeze.empty() && train.train_only.empty()) return model;
  require_fitting(spec, "train.freeze", train.freeze, model);
  require_fitting(spec, "train.train_only", train.train_only, model);
  require_fitting(spec, "train.lora.also_train", train.lora.also_train, model);
  if (lora) {
    try {
      model = with_lora(model, lora_settings(spec), training);
    } catch (const UserError& error) {
      throw UserError("{}: train.lora.modules: {}", spec.where("train.lora.modules"), error.what());
    }
  }
  const auto is_trained = [&](const std::string& name) {
    if (lora)
      return is_lora_name(name) || fits_pattern(train.lora.also_train, name) || is_new_head(spec, name);
    return train.freeze.empty() ? fits_pattern(train.train_only, name) : !fits_pattern(train.freeze, name);
  };
  if (std::ranges::none_of(model.params, [&](const ParamInit& param) { return is_trained(param.name); }))
    throw UserError("{}: train.freeze freezes all parameters, and nothing is left to train; name fewer",
                    spec.where("train.freeze"));
  const HfSource* source = spec.model.source.get();
  return with_frozen(model, [&](const std::string& name) -> std::optional<DType> {
    if (is_trained(name)) return std::nullopt;
    return source == nullptr ? DType::kF32 : source->stored(name);
  });
}

std::string trained_text(const Model& model) {
  int64_t trained = 0;
  for (const GraphInput& input : model.graph.inputs())
    if (input.role == Role::kParam) trained += model.graph.type(input.value).shape.numel();
  const int64_t all = parameter_count(model);
  return trained == all ? "" : fmt::format("{} of {} parameters trained", trained, all);
}

}  // namespace lockstep
