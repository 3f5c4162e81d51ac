// What a run's job says about files that its model is used on: the format they are in (what was asked for,
// what their names say, or that of the training data), and what the classes are called.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/open/open.h"
#include "job/spec.h"
#include "prepare/trained_run.h"

namespace lockstep {

// Sets the format in the job. Throws UserError for one that the model's records do not come in.
void choose_format(const std::vector<std::string>& files, const std::optional<std::string>& asked,
                   JobSpec& spec);

// The names of the run's classes in the order of the model's answers; none: 0, 1, ... `options` are those of
// its job.
std::vector<std::string> class_names(const TrainedRun& run, const DataOptions& options);

}  // namespace lockstep
