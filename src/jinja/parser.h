// From the words of a template to its tree.
#pragma once
#include <memory>
#include <string_view>

#include "jinja/node.h"

namespace lockstep {

struct ParsedJinja {
  std::unique_ptr<JinjaNode> root;
  bool has_generation = false;
};

// Throws UserError that names the line, for what is no template and for what is not supported.
ParsedJinja parse_jinja(std::string_view source);

}  // namespace lockstep
