// adapter_config.json: what PEFT says about an adapter of low rank.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/lora.h"

namespace lockstep {

struct PeftConfig {
  std::string path;  // of the file
  LoraSettings lora;
  std::vector<std::string> modules_to_save;  // modules that the adapter holds as a whole
  std::string base_model;                    // where the frozen model came from
};

// The folder's adapter_config.json. Throws UserError for what is damaged, and for adapters that this program
// would compute differently: other kinds than LORA, DoRA, ranks or scales that differ by module, trained
// biases. Where an expression names the modules, there are none in the result: the adapter's tensors tell.
PeftConfig read_peft_config(const std::string& folder);
PeftConfig parse_peft_config(std::string_view text, const std::string& path);

// The text of the file. `fan_in_fan_out`: whether adapted weights lie [in, out]; `task`: as "CAUSAL_LM", may
// be empty.
std::string peft_config_text(const PeftConfig& config, bool fan_in_fan_out, const std::string& task);

}  // namespace lockstep
