#include "fuzz/hf_files.h"

#include "base/error.h"
#include "model/hf/preprocessor.h"
#include "model/hf/weight_index.h"
#include "model/peft_config.h"

namespace lockstep::testing {
bool check_weight_index(std::string_view text) {
  try {
    const WeightIndex index = parse_weight_index(text, "model.safetensors.index.json");
    for (const auto& [name, file] : index.files) {
      LOCKSTEP_CHECK(!name.empty(), "a tensor without a name");
      LOCKSTEP_CHECK(is_bare_file_name(file) && file.find('/') == std::string::npos, "{} is no bare name",
                     file);
    }
    return !index.files.empty();
  } catch (const UserError&) {
    return false;
  }
}

bool check_preprocessor(std::string_view text) {
  try {
    const HfPreprocessor found = parse_preprocessor(text, "preprocessor_config.json");
    LOCKSTEP_CHECK(found.size >= 1 && (found.stretched || found.short_side >= found.size), "{} pixels of {}",
                   found.size, found.short_side);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

bool check_peft_config(std::string_view text) {
  try {
    const PeftConfig config = parse_peft_config(text, "adapter_config.json");
    if (config.lora.modules.empty()) return true;  // an expression, which is not written
    const PeftConfig again = parse_peft_config(peft_config_text(config, false, ""), "again");
    LOCKSTEP_CHECK(again.lora.rank == config.lora.rank && again.lora.modules == config.lora.modules,
                   "differs when it is read again");
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace lockstep::testing
