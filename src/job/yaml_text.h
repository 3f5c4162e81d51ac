// What is checked of a job file's bytes before a YAML parser sees them.
#pragma once
#include <string>
#include <string_view>

#include "job/yaml_node.h"

namespace lockstep {

// Throws a UserError for a text that is too large, is not UTF-8, holds control characters, or indents with
// tabs.
void check_yaml_text(std::string_view text, const std::string& source, const YamlLimits& limits);

}  // namespace lockstep
