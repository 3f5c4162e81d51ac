// The parts that a job names, built and checked against each other: everything that exists before memory is
// taken for training.
#pragma once
#include "data/open.h"
#include "job/resolve.h"
#include "model/model.h"
#include "run/job_model.h"
#include "train/checkpoint/identity.h"
#include "train/schedule.h"
#include "train/train_plans.h"

namespace lockstep {

struct JobParts {
  JobSpec spec;
  Data data;
  InputSizes inputs;
  Model model;
  ResolvedJob resolved;
  Schedule schedule;
  TrainOptions options;
  Identity identity;

  int64_t steps() const { return *resolved.steps; }
};

// Throws UserError.
JobParts build_parts(JobSpec spec, const Backend& backend);

}  // namespace lockstep
