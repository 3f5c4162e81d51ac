#include "fuzz/jinja.h"

#include "base/error.h"
#include "jinja/template.h"

namespace lockstep::testing {
namespace {

constexpr std::string_view kVariables = R"({
  "messages": [{"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "2+2?"},
               {"role": "assistant", "content": "é 4", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1.5}}}]}],
  "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "tools": null})";

}  // namespace

bool check_jinja(std::string_view text) {
  try {
    const JinjaTemplate chat("template", text);
    const JinjaValue variables = value_of_json(kVariables);
    const JinjaOutput output = chat.render(variables.dict());
    LOCKSTEP_CHECK(chat.render(variables.dict()).text == output.text, "renders differently the second time");
    for (const auto& [begin, end] : output.generated)
      LOCKSTEP_CHECK(begin <= end && end <= output.text.size(), "generated {} to {}", begin, end);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace lockstep::testing
