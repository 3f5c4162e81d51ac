#include "fuzz/generation_config.h"

#include "base/error.h"
#include "model/hf/generation_config.h"

namespace lockstep::testing {

bool check_generation_config(std::string_view bytes) {
  try {
    const GenerationConfig config = parse_generation_config(bytes, "generation_config.json");
    for (const int32_t token : config.end_tokens) LOCKSTEP_CHECK(token >= 0, "token {}", token);
    LOCKSTEP_CHECK(config.temperature.value_or(1) > 0 && config.top_p.value_or(1) > 0 &&
                       config.repetition_penalty.value_or(1) > 0 && config.top_k.value_or(0) >= 0,
                   "numbers that no text can be drawn with");
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace lockstep::testing
