// What is legal and surely not meant: said by check and train before the first step.
#pragma once
#include <string>
#include <vector>

#include "prepare/job_parts.h"

namespace lockstep {

// One sentence each: a batch larger than the data, evaluation on a file that is trained on, a column that
// alone decides the label, a learning rate of 0, a table that tensor ranks cannot share.
std::vector<std::string> job_warnings(const JobParts& parts);

}  // namespace lockstep
