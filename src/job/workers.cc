#include "job/workers.h"

#include <algorithm>

namespace lockstep {

std::optional<int64_t> wanted_workers(const JobSpec& spec) {
  if (spec.strategy.workers) return spec.strategy.workers;
  int64_t machines = 0;
  for (size_t i = 0; i < std::min(kTrainingPools, spec.workerPoolSpecs.size()); ++i)
    machines += spec.workerPoolSpecs[i].replicaCount;
  return machines > 0 ? std::optional(machines) : std::nullopt;
}

}  // namespace lockstep
