// The range test of a job: its model, data and optimizer from their beginning, with rates of the test's own.
// Nothing is written anywhere; the same rates and losses for any number of threads.
#pragma once
#include <functional>

#include "job/spec.h"
#include "train/rate/lr_range.h"
#include "train/rate/schedule.h"

namespace lockstep {

struct LrSearch {
  LrRange range;
  Schedule schedule;  // of the job as it is: how a peak becomes train.lr.base
};

// Calls `watch` after every step. Throws UserError.
LrSearch search_lr(JobSpec spec, const LrRangeSettings& settings,
                   const std::function<void(const LrRange&)>& watch = {});

}  // namespace lockstep
