// The chat templates that are known by name.
#pragma once
#include <span>
#include <string_view>

namespace lockstep {

struct NamedChatTemplate {
  std::string_view name;
  std::string_view source;
};

std::span<const NamedChatTemplate> named_chat_templates();

}  // namespace lockstep
