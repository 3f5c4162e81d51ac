// The learning-rate schedule that a job file describes.
#pragma once
#include "job/resolve.h"
#include "train/rate/schedule.h"

namespace lockstep {

// Throws a UserError if the course needs the run's number of steps and that is open.
Schedule job_schedule(const JobSpec& spec, const ResolvedJob& job);

}  // namespace lockstep
