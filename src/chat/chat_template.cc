#include "chat/chat_template.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "chat/named_templates.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string choices() {
  std::string names;
  for (const NamedChatTemplate& known : named_chat_templates())
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  return names;
}

// What tokenizer_config.json says; empty where it says nothing.
std::string configured_template(const std::string& path) {
  const auto json = nlohmann::json::parse(read_file(path), nullptr, false);
  if (json.is_discarded() || !json.is_object()) throw UserError("{}: not a JSON object", path);
  const auto held = json.find("chat_template");
  if (held == json.end() || held->is_null()) return {};
  if (held->is_string()) return held->get<std::string>();
  if (held->is_array())
    for (const auto& entry : *held)
      if (entry.is_object() && entry.value("name", "") == "default" && entry.contains("template") &&
          entry["template"].is_string())
        return entry["template"].get<std::string>();
  throw UserError(
      "{}: chat_template is neither a text nor a list that has one called default; name one of {}", path,
      choices());
}

ChatTemplate own_template(const std::string& folder) {
  const fs::path file = fs::path(folder) / "chat_template.jinja";
  if (fs::exists(file)) return {file.string(), read_file(file.string())};
  const fs::path config = fs::path(folder) / "tokenizer_config.json";
  std::string source = fs::exists(config) ? configured_template(config.string()) : "";
  if (source.empty())
    throw UserError(
        "{} has no chat template (neither chat_template.jinja nor the key in tokenizer_config.json); name "
        "the "
        "one that the model was trained with: {}; plain is for models that were not taught to chat",
        folder, choices());
  return {config.string() + ": chat_template", std::move(source)};
}

}  // namespace

std::vector<std::string_view> chat_template_names() {
  std::vector<std::string_view> names{kOwnChatTemplate};
  for (const NamedChatTemplate& known : named_chat_templates()) names.push_back(known.name);
  return names;
}

ChatTemplate find_chat_template(std::string_view name, const std::string& folder) {
  if (name == kOwnChatTemplate) return own_template(folder);
  for (const NamedChatTemplate& known : named_chat_templates())
    if (known.name == name) return {fmt::format("the chat template {}", name), std::string(known.source)};
  throw UserError("there is no chat template '{}'; {}", name, suggestion(name, chat_template_names()));
}

}  // namespace lockstep
