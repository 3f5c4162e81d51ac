// Are the files that a job names there? Asked before anything is planned, so that a slip costs no time.
#pragma once
#include "job/spec.h"

namespace lockstep {

// Throws a UserError that cites the line for the first path or pattern that names nothing.
void require_files(const JobSpec& spec);

}  // namespace lockstep
