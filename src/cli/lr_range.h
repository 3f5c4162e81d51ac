// lockstep lr JOB --range-test: trains with rising rates and says which to use.
#pragma once
#include "job/spec.h"
#include "train/rate/lr_range.h"

namespace lockstep {

void run_range_test(const JobSpec& spec, const LrRangeSettings& settings, bool ascii);

}  // namespace lockstep
