// What a Hugging Face folder says about generating: the tokens that end a text, and how tokens are chosen.
// generation_config.json says it; where it does not, config.json names the tokens.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct GenerationConfig {
  std::vector<int32_t> end_tokens;
  std::optional<double> temperature, top_p, repetition_penalty;
  std::optional<int64_t> top_k;
};

// Empty where the folder has neither file. Throws UserError for a value that cannot be meant; keys of
// generation_config.json that change which tokens are chosen, and that are not implemented, are refused by
// name.
GenerationConfig read_generation_config(const std::string& folder);
// Of the text of generation_config.json; `where` names it in errors.
GenerationConfig parse_generation_config(std::string_view text, const std::string& where);

}  // namespace lockstep
