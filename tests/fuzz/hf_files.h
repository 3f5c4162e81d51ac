// The small files of Hugging Face folders: any bytes are taken and then consistent, or refused with a
// UserError.
#pragma once
#include <string_view>

namespace lockstep::testing {

// model.safetensors.index.json.
bool check_weight_index(std::string_view text);
// preprocessor_config.json.
bool check_preprocessor(std::string_view text);
// adapter_config.json.
bool check_peft_config(std::string_view text);

}  // namespace lockstep::testing
