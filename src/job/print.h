// The effective job as a YAML file: every value that holds, and in a comment where it came from.
#pragma once
#include <string>

#include "job/spec.h"

namespace lockstep {

// Reading the text again gives the same values.
std::string to_yaml(const JobSpec& spec);

}  // namespace lockstep
