// How many workers a job asks for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "job/spec.h"

namespace lockstep {

// Pools of workerPoolSpecs that train: the first worker's, and that of the others.
inline constexpr size_t kTrainingPools = 2;

// strategy.workers, or one for every machine of the pools that train (0 and 1). Nothing: the job leaves it
// open. A cluster that has started the processes knows better than the pools.
std::optional<int64_t> wanted_workers(const JobSpec& spec);

}  // namespace lockstep
