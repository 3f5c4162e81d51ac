#include "job/paths.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "job/yaml_node.h"

namespace lockstep {
namespace {

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }

std::string quoted(std::string_view text) { return fmt::format("'{}'", clipped(text)); }

std::string value_of(const std::string& name, std::string_view text, const VariableValue& variable) {
  const std::optional<std::string> value = variable(name);
  if (!value || value->empty())
    throw UserError(
        "{}, and {} is not set in the environment; set it, or write the path out ($$ is a dollar "
        "sign)",
        quoted(text), name);
  return *value;
}

// Takes the name of a variable off the front of `rest`, which begins behind the dollar sign; empty: there is
// none.
std::string take_name(std::string_view& rest, std::string_view text) {
  const bool braces = rest.starts_with('{');
  const std::string_view from = braces ? rest.substr(1) : rest;
  const auto* const stop = std::find_if_not(from.begin(), from.end(), in_name);
  const auto length = static_cast<size_t>(stop - from.begin());
  if (!braces) {
    if (length == 0 || !begins_name(from[0])) return "";
    rest.remove_prefix(length);
    return std::string(from.substr(0, length));
  }
  if (length == 0 || !begins_name(from[0]) || length == from.size() || from[length] != '}')
    throw UserError(
        "{}, where ${{ begins the name of a variable that does not end with }}; write "
        "${{NAME}}, or $$ for a dollar sign",
        quoted(text));
  rest.remove_prefix(length + 2);
  return std::string(from.substr(0, length));
}

std::string with_variables(std::string_view text, const VariableValue& variable) {
  std::string path;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t dollar = rest.find('$');
    path += rest.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    rest.remove_prefix(dollar + 1);
    if (rest.starts_with('$')) {
      path += '$';
      rest.remove_prefix(1);
      continue;
    }
    const std::string name = take_name(rest, text);
    path += name.empty() ? "$" : value_of(name, text, variable);
  }
  return path;
}

// "gs" of "gs://bucket/run"; empty: it is no address.
std::string_view scheme_of(std::string_view path) {
  const size_t end = path.find("://");
  if (end == std::string_view::npos || end == 0) return {};
  const std::string_view scheme = path.substr(0, end);
  const auto fits = [](char c) { return in_name(c) || c == '+' || c == '-' || c == '.'; };
  return std::all_of(scheme.begin(), scheme.end(), fits) ? scheme : std::string_view();
}

void refuse_address(std::string_view path) {
  const std::string_view scheme = scheme_of(path);
  if (scheme.empty()) return;
  const std::string_view rest = path.substr(scheme.size() + 3);
  // Where Vertex AI mounts the buckets of Cloud Storage.
  const std::string_view mounted = scheme == "file" ? "" : scheme == "gs" ? "/gcs/" : "/mnt/";
  throw UserError("{}, and only files and folders are read and written; {} {}{}", quoted(path),
                  scheme == "file" ? "write" : "mount it as a folder, and write its path, for example",
                  mounted, clipped(rest));
}

}  // namespace

std::string expanded_path(std::string_view text, const VariableValue& variable) {
  std::string path;
  if (text.starts_with('~')) {
    if (text.size() > 1 && text[1] != '/')
      throw UserError("{}, where ~ is not followed by /; write the path of that folder out", quoted(text));
    path = value_of("HOME", text, variable);
    text.remove_prefix(1);
  }
  path += with_variables(text, variable);
  refuse_address(path);
  return path;
}

std::string expanded_path(std::string_view text) {
  return expanded_path(text, [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

std::string path_text(const std::string& path) {
  std::string text = path.starts_with('~') ? "./" : "";
  for (const char c : path) text += c == '$' ? std::string("$$") : std::string(1, c);
  return text;
}

}  // namespace lockstep
