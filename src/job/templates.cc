#include "job/templates.h"

#include <vector>

#include "base/error.h"

namespace lockstep {

const JobTemplate& find_template(std::string_view name) {
  std::vector<std::string_view> names;
  for (const JobTemplate& one : job_templates()) {
    if (one.name == name) return one;
    names.push_back(one.name);
  }
  throw UserError("there is no template {}; use {}", name, fmt::join(names, ", "));
}

}  // namespace lockstep
