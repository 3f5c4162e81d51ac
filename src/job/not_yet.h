// What a job file may say but this version cannot do. Each line goes away with the feature that it waits for.
#pragma once
#include "job/spec.h"

namespace lockstep {

// Throws a UserError that names the value that can be used meanwhile.
void refuse_not_yet(const JobSpec& spec);

}  // namespace lockstep
