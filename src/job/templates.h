// Job files to start from, as `lockstep init` writes them. The texts are src/job/templates/*.yaml, put into
// the program when it is built.
#pragma once
#include <span>
#include <string_view>

namespace lockstep {

struct JobTemplate {
  std::string_view name;
  std::string_view text;
};

std::span<const JobTemplate> job_templates();
// Throws a UserError that names the templates there are.
const JobTemplate& find_template(std::string_view name);

}  // namespace lockstep
