// How many Reduction Servers a job would gain from, for `lockstep check`.
#pragma once
#include <string>
#include <vector>

#include "job/spec.h"

namespace lockstep {

// Lines for people; none where nothing is sent between hosts.
std::vector<std::string> server_advice(const JobSpec& spec);

}  // namespace lockstep
