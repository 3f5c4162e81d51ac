// Layouts: the ways in which a job could be split over some devices, and what each of them takes on the
// fullest device.
//
// They are planned as a run would plan them, on a backend that runs nothing, so that neither the devices nor
// their memory have to be there. A layout whose state alone does not fit is not planned: what its state
// takes, by arithmetic, says so in no time.
#pragma once
#include <string>
#include <vector>

#include "prepare/job_plan.h"

namespace lockstep {

struct DeviceSet {
  int64_t count = 1;
  int64_t bytes = 0;  // of memory that each has
};

struct Layout {
  int64_t data = 1, pipeline = 1, tensor = 1;
  int64_t zero = 0;
  Recompute recompute = Recompute::kNone;
  bool offload = false;  // of the optimizer's state and averages to the host's memory
};
// As --set takes them: the workers, and what differs from the defaults.
std::vector<std::string> settings_of(const Layout& layout);

struct PlannedLayout {
  Layout layout;
  std::string refused;  // why this job cannot be split so; the rest is empty then
  // Of the fullest device.
  int64_t parameters = 0, gradients = 0, state = 0, activations = 0;
  int64_t bytes = 0;
  bool planned = false;  // false: the state alone is too much, and is all that was counted
  bool fits = false;
};

// Every mesh that the devices make, at every ZeRO stage, with the least recomputation that fits or, where
// none does, the most, and state in the host's memory where nothing else fits; those that fit first. The
// leaves of a step are as many as the job says, or at least one for every data-parallel worker.
std::vector<PlannedLayout> plan_layouts(const JobSpec& spec, const InputSizes& inputs,
                                        const DeviceSet& devices);

// One line for each, and which to write into the job.
std::string layout_table(const std::vector<PlannedLayout>& layouts, const DeviceSet& devices);

}  // namespace lockstep
