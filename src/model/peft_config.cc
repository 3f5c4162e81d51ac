#include "model/peft_config.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "model/hf/weight_files.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kLongest = 16 << 20;
constexpr int64_t kMostModules = 100'000;

class PeftReader {
 public:
  PeftReader(const Json& json, const std::string& path) : json_(json), path_(path) {}

  // Keys that are false, null or empty say nothing.
  void refuse_where_set(const char* key, const char* instead) const {
    const Json* value = find(key);
    if (value == nullptr || *value == false || (value->is_structured() && value->empty()) || *value == "")
      return;
    fail(key, instead);
  }
  void require(const char* key, const char* only, const char* instead) const {
    const Json* value = find(key);
    if (value != nullptr && *value != only) fail(key, instead);
  }
  int64_t rank() const {
    const Json* value = find("r");
    if (value == nullptr) return 8;
    if (!value->is_number_unsigned() || value->get<uint64_t>() < 1 || value->get<uint64_t>() > (1 << 16))
      fail("r", "it must be a whole number of at least 1");
    return value->get<int64_t>();
  }
  double number(const char* key, double otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number()) fail(key, "it must be a number");
    return value->get<double>();
  }
  bool flag(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) fail(key, "it must be true or false");
    return value->get<bool>();
  }
  std::string text(const char* key) const {
    const Json* value = find(key);
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
  }
  std::vector<std::string> texts(const char* key) const {
    const Json* value = find(key);
    std::vector<std::string> all;
    if (value == nullptr) return all;
    if (!value->is_array() || static_cast<int64_t>(value->size()) > kMostModules)
      fail(key, "it must be a list of names");
    for (const Json& one : *value) {
      if (!one.is_string() || one.get_ref<const std::string&>().empty())
        fail(key, "it must be a list of names");
      all.push_back(one.get<std::string>());
    }
    return all;
  }
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  [[noreturn]] void fail(const char* key, const std::string& problem) const {
    const Json* value = find(key);
    const std::string text =
        value == nullptr ? "absent" : value->dump(-1, ' ', true, Json::error_handler_t::replace);
    throw UserError("{}: {} is {}: {}", path_, key, text.substr(0, 80), problem);
  }

 private:
  const Json& json_;
  const std::string& path_;
};

std::vector<std::string> modules_of(const PeftReader& reader) {
  const Json* value = reader.find("target_modules");
  if (value != nullptr && value->is_string()) {
    if (value->get_ref<const std::string&>() == kAllLinear) return {std::string(kAllLinear)};
    return {};
  }
  std::vector<std::string> modules = reader.texts("target_modules");
  if (modules.empty()) reader.fail("target_modules", "list the modules that it adapts");
  return modules;
}

}  // namespace

PeftConfig parse_peft_config(std::string_view text, const std::string& path) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw UserError("{} is not a JSON object", path);
  const PeftReader reader(json, path);
  if (reader.find("peft_type") == nullptr)
    throw UserError("{} has no peft_type; adapters are of type LORA", path);
  reader.require("peft_type", "LORA", "only LORA is read");
  reader.refuse_where_set("use_dora", "DoRA is not computed here");
  reader.refuse_where_set("rank_pattern", "ranks that differ by module are not read");
  reader.refuse_where_set("alpha_pattern", "scales that differ by module are not read");
  reader.refuse_where_set("lora_bias", "trained biases are not read");
  reader.refuse_where_set("layers_to_transform", "list the modules by their whole names in target_modules");
  reader.refuse_where_set("exclude_modules", "list the modules by their whole names in target_modules");
  reader.refuse_where_set("target_parameters", "only modules are adapted here");
  reader.refuse_where_set("layer_replication", "layers are not repeated here");
  reader.require("bias", "none", "trained biases are not read");
  PeftConfig config;
  config.path = path;
  config.lora.rank = reader.rank();
  config.lora.alpha = reader.number("lora_alpha", 8);
  config.lora.dropout = reader.number("lora_dropout", 0);
  config.lora.rank_stabilised = reader.flag("use_rslora");
  config.lora.modules = modules_of(reader);
  config.modules_to_save = reader.texts("modules_to_save");
  config.base_model = reader.text("base_model_name_or_path");
  return config;
}

PeftConfig read_peft_config(const std::string& folder) {
  std::error_code failure;
  if (!std::filesystem::is_directory(folder, failure)) throw UserError("{}: there is no such folder", folder);
  const std::string path = file_inside(folder, "adapter_config.json");
  return parse_peft_config(read_file(path, kLongest), path);
}

std::string peft_config_text(const PeftConfig& config, bool fan_in_fan_out, const std::string& task) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Json json = {{"alpha_pattern", Json::object()},
               {"base_model_name_or_path", or_null(config.base_model)},
               {"bias", "none"},
               {"fan_in_fan_out", fan_in_fan_out},
               {"inference_mode", true},
               {"init_lora_weights", true},
               {"lora_alpha", config.lora.alpha},
               {"lora_dropout", config.lora.dropout},
               {"modules_to_save", config.modules_to_save.empty() ? Json() : Json(config.modules_to_save)},
               {"peft_type", "LORA"},
               {"r", config.lora.rank},
               {"rank_pattern", Json::object()},
               {"target_modules", config.lora.modules},
               {"task_type", or_null(task)},
               {"use_dora", false},
               {"use_rslora", config.lora.rank_stabilised}};
  constexpr double kWhole = 1e15;  // up to which every whole number is itself
  if (std::abs(config.lora.alpha) < kWhole && config.lora.alpha == std::floor(config.lora.alpha))
    json["lora_alpha"] = static_cast<int64_t>(config.lora.alpha);
  return json.dump(2) + "\n";
}

}  // namespace lockstep
