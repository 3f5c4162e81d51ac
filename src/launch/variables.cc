#include "launch/variables.h"

#include <unistd.h>

#include <charconv>

#include "base/error.h"

namespace lockstep {

Variables process_variables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      variables.emplace(text.substr(0, equals), std::string(text.substr(equals + 1)));
  }
  return variables;
}

std::optional<std::string_view> find_variable(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  if (found == variables.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<int64_t> find_integer(const Variables& variables, std::string_view name, int64_t least,
                                    int64_t most) {
  const auto text = find_variable(variables, name);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  const bool whole = error == std::errc() && end == text->data() + text->size();
  if (!whole || value < least || value > most)
    throw UserError("{}={} is not a whole number from {} to {}; set it to one or unset it", name,
                    in_quotes(*text), least, most);
  return value;
}

int64_t need_integer(const Variables& variables, std::string_view name, int64_t least, int64_t most,
                     std::string_view because) {
  const auto value = find_integer(variables, name, least, most);
  if (!value)
    throw UserError("{} is set but {} is not; set {} to a whole number from {} to {}, or unset {}", because,
                    name, name, least, most, because);
  return *value;
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string shown;
  for (const char c : text.substr(0, kMost))
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return fmt::format("'{}{}'", shown, text.size() > kMost ? "..." : "");
}

}  // namespace lockstep
