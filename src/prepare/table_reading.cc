#include "prepare/table_reading.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/error.h"

namespace lockstep {
namespace {

// What fields of tables are made of themselves.
bool could_be_a_value(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0 || c == '"' || c == '\n' || c == '\r' || c == '.' ||
         c == '-' || c == '+';
}

// Nothing: recognised by the header of each file.
std::optional<char> delimiter_of(const JobSpec& spec) {
  constexpr std::pair<std::string_view, char> kNames[] = {{"comma", ','}, {"semicolon", ';'}, {"tab", '\t'},
                                                          {"\\t", '\t'},  {"bar", '|'},       {"pipe", '|'}};
  const std::string& text = spec.data.delimiter;
  if (text.empty() || text == "auto") return {};
  for (const auto& [name, delimiter] : kNames)
    if (name == text) return delimiter;
  if (text.size() != 1 || could_be_a_value(text[0]))
    throw UserError(
        "{}: data.delimiter is '{}'; write one character in quotes, such as \";\", or tab, or auto",
        spec.where("data.delimiter"), text);
  return text[0];
}

}  // namespace

void set_table_reading(const JobSpec& spec, DataOptions& options) {
  const bool table = options.format == DataOptions::Format::kTable;
  if (!table && options.format != DataOptions::Format::kTokenized) return;
  if (const auto delimiter = delimiter_of(spec)) options.settings["separator"] = std::string(1, *delimiter);
  if (!table) return;
  if (!spec.data.missing_values.empty())
    options.missing = std::make_shared<const MissingTexts>(spec.data.missing_values);
  options.looks_through = true;
}

}  // namespace lockstep
