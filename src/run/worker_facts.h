// What all workers of a run must have alike: the identity of the run, and what says when it evaluates, saves
// and ends. Workers that differed would train different things, or stop waiting for each other in the middle.
#pragma once
#include <map>
#include <string>

#include "prepare/job_parts.h"

namespace lockstep {

// By the names of the job file, so that the one who differs is told in which key.
std::map<std::string, std::string> shared_facts(const JobParts& parts);

}  // namespace lockstep
