#include "job/key_help.h"

#include <fmt/format.h>

#include <algorithm>

#include "job/aliases.h"
#include "job/fields.h"

namespace lockstep {
namespace {

std::string default_text(const Field& field) {
  if (field.is_required()) return "required";
  if (!field.selector().empty()) {
    std::string text;
    for (const auto& [value, own] : field.cases())
      text +=
          fmt::format("{}{}{}", text.empty() ? "" : "; ", value, own.empty() ? "" : fmt::format(": {}", own));
    const std::string cases = fmt::format("by {} ({})", field.selector(), text);
    return field.absent().empty() ? cases : fmt::format("{}; only with {}", field.absent(), cases);
  }
  if (!field.fallback().empty()) return std::string(field.fallback());
  return field.absent().empty() ? "none" : std::string(field.absent());
}

std::string field_text(const Field& field) {
  if (field.is_ignored())
    return fmt::format("{}\n  read and passed over: it means nothing here\n", field.path());
  std::string text =
      fmt::format("{}\n  {}\n  value:   {}\n  default: {}\n  as in:   --set {}={}\n", field.path(),
                  field.doc(), field.expectation(), default_text(field), field.path(), field.sample());
  std::vector<std::string> others;
  for (const Alias& alias : job_aliases())
    if (alias.target == field.path()) others.push_back(fmt::format("{} ({})", alias.name, alias.tool));
  if (!others.empty()) text += fmt::format("  also:    {}\n", fmt::join(others, ", "));
  return text;
}

std::string section_text(std::string_view section) {
  std::string text = fmt::format("{}\n", section);
  if (const std::string_view doc = section_doc(section); !doc.empty()) text += fmt::format("  {}\n", doc);
  size_t width = 0;
  std::vector<const Field*> fields;
  for (const Field& field : job_fields())
    if (field.path().starts_with(fmt::format("{}.", section)) && !field.is_ignored()) {
      fields.push_back(&field);
      width = std::max(width, field.path().size());
    }
  text += "\n";
  for (const Field* field : fields) text += fmt::format("  {:{}}  {}\n", field->path(), width, field->doc());
  return text + fmt::format("\nOne of them in full: lockstep help {}\n",
                            fields.empty() ? section : fields[0]->path());
}

}  // namespace

std::string key_help(std::string_view path) {
  if (const Field* field = find_field(path)) return field_text(*field);
  return is_section(path) ? section_text(path) : "";
}

}  // namespace lockstep
