// Chat templates: how a conversation is written as one text for a model, as a Jinja template
// (jinja/template.h). A model's folder brings its own; some are known here by name.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct ChatTemplate {
  std::string name;    // what errors call it: a name of those below, or a file
  std::string source;  // Jinja
};

inline constexpr std::string_view kOwnChatTemplate = "auto";

// The names there are, `auto` first.
std::vector<std::string_view> chat_template_names();

// The template of a name; for `auto` that of the folder: chat_template.jinja, or else chat_template in
// tokenizer_config.json (of several, the one called default). Throws UserError that names the choices where
// there is no such name, or the folder has none.
ChatTemplate find_chat_template(std::string_view name, const std::string& folder);

}  // namespace lockstep
