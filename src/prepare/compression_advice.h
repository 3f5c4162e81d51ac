// What compressing a job's gradients would save on the wire and take in memory, for `lockstep check`.
#pragma once
#include <string>
#include <vector>

#include "train/step/train_plans.h"

namespace lockstep {

// Lines for people; none where nothing is sent and nothing compressed.
std::vector<std::string> compression_advice(const TrainOptions& options, const FlatLayout& layout);

}  // namespace lockstep
