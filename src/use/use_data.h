// Which format the files are in that a trained model is used on: what was asked for, what their names say, or
// that of the run's training data.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "job/spec.h"

namespace lockstep {

// Sets the format in the job. Throws UserError for one that the model's records do not come in.
void choose_format(const std::vector<std::string>& files, const std::optional<std::string>& asked,
                   JobSpec& spec);

}  // namespace lockstep
