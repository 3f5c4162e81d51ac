// One value between YAML and its place in a JobSpec, both ways, by the field's type and limits.
#pragma once
#include <optional>
#include <string>

#include "job/field.h"
#include "job/yaml_node.h"

namespace lockstep {

// Who is to blame in an error: "job.yaml:14" and the key as it was written.
struct Blame {
  std::string place;
  std::string key;
};

// Throws a UserError that says what was found and what to write instead.
void assign_value(const Field& field, const YamlNode& value, const Blame& blame, JobSpec& spec);
// As YAML that assign_value reads back to the same value; nothing if it is unset.
std::optional<std::string> value_text(const Field& field, const JobSpec& spec);

// YAML text of a string, quoted where it would read as something else.
std::string quoted_if_needed(const std::string& text);

}  // namespace lockstep
