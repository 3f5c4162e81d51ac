#include <fmt/format.h>

#include "base/error.h"
#include "model/hf/family.h"

namespace lockstep {

// clang-format off
#define LOCKSTEP_HF_FAMILIES(X)                                                          \
  X(llama) X(mistral) X(qwen2) X(qwen3) X(gemma2) X(gemma3_text) X(gemma3) X(phi3) X(olmo2) \
  X(gpt2) X(gpt_neox) X(bert) X(roberta) X(distilbert) X(vit)
// clang-format on

#define DECLARE(name) HfFamily name##_hf_family();
LOCKSTEP_HF_FAMILIES(DECLARE)
#undef DECLARE

const std::vector<const HfFamily*>& hf_families() {
#define MAKE(name) name##_hf_family(),
  static const std::vector<HfFamily> families = {LOCKSTEP_HF_FAMILIES(MAKE)};
#undef MAKE
  static const std::vector<const HfFamily*> all = [] {
    std::vector<const HfFamily*> pointers;
    for (const HfFamily& family : families) pointers.push_back(&family);
    return pointers;
  }();
  return all;
}

std::string_view name_of(HfHead head) {
  switch (head) {
    case HfHead::kCausalLm: return "causal LM";
    case HfHead::kMaskedLm: return "masked LM";
    case HfHead::kSequenceClass: return "sequence classification";
    case HfHead::kTokenClass: return "token classification";
    case HfHead::kImageClass: return "image classification";
  }
  return "?";
}

int64_t read_classes(const HfConfig& config) {
  const int64_t otherwise = config.size("num_labels", 2, 1);
  const auto labels = static_cast<int64_t>(config.text_map("id2label").size());
  return labels > 0 ? labels : otherwise;
}

namespace {

std::vector<std::string> read_class_names(const HfConfig& config, int64_t classes) {
  const std::map<std::string, std::string> labels = config.text_map("id2label");
  std::vector<std::string> names;
  bool own = false;
  for (int64_t i = 0; i < classes; ++i) {
    const auto found = labels.find(std::to_string(i));
    if (found == labels.end()) return {};
    own = own || found->second != fmt::format("LABEL_{}", i);
    names.push_back(found->second);
  }
  return own ? names : std::vector<std::string>{};
}

const HfFamily& family_of(const HfConfig& config) {
  const std::optional<std::string> type = config.maybe_text("model_type");
  std::vector<std::string_view> known;
  for (const HfFamily* family : hf_families()) {
    if (type == family->model_type) return *family;
    known.push_back(family->model_type);
  }
  if (!type)
    throw UserError("{} has no model_type; it names the family, one of {}", config.where(),
                    fmt::join(known, ", "));
  config.fail("model_type",
              fmt::format("there is no such family here; known are {}", fmt::join(known, ", ")));
}

std::unique_ptr<HfModel> make(const HfFamily& family, const HfConfig& config, HfHead head) {
  std::unique_ptr<HfModel> model = family.make(config, head);
  config.refuse_unread();
  model->model_type = family.model_type;
  model->head = head;
  model->class_names = read_class_names(config, model->classes);
  return model;
}

std::string architectures_of(const HfFamily& family) {
  std::vector<std::string_view> names;
  for (const auto& [name, head] : family.architectures) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::unique_ptr<HfModel> make_hf_model(const HfConfig& config) {
  const HfFamily& family = family_of(config);
  const std::vector<std::string> architectures = config.texts("architectures");
  if (architectures.size() != 1)
    config.fail("architectures", fmt::format("name the one class of the model; of {} there are {}",
                                             family.model_type, architectures_of(family)));
  for (const auto& [name, head] : family.architectures)
    if (architectures[0] == name) return make(family, config, head);
  config.fail("architectures", fmt::format("this class is not implemented; of {} there are {}",
                                           family.model_type, architectures_of(family)));
}

std::unique_ptr<HfModel> make_hf_model(const HfConfig& config, HfHead head) {
  const HfFamily& family = family_of(config);
  config.texts("architectures");
  for (const auto& [name, of] : family.architectures)
    if (of == head) return make(family, config, head);
  config.fail("model_type", fmt::format("there is no head for {}; of {} there are {}", name_of(head),
                                        family.model_type, architectures_of(family)));
}

}  // namespace lockstep
