#include "prepare/host_share.h"

#include <algorithm>

#include "job/workers.h"

namespace lockstep {
namespace {

// The cores that the workers of this host have together.
int64_t cores_together(const WorkerPlace& place, const Cores& cores) {
  if (place.binds_nobody) return cores.usable;
  return place.cores > 0 ? std::min<int64_t>(place.cores, cores.machine) : cores.machine;
}

}  // namespace

int worker_processors(int64_t usable, int64_t together, int64_t workers) {
  return static_cast<int>(std::max<int64_t>(1, std::min(usable, together / workers)));
}

HostShare host_share(const std::optional<WorkerPlace>& place, const Cores& cores) {
  if (!place) return {.processors = cores.usable};
  return {.local_rank = place->local_rank,
          .workers = place->local_size,
          .processors = worker_processors(cores.usable, cores_together(*place, cores), place->local_size)};
}

HostShare expected_share(const JobSpec& spec, const Cores& cores) {
  const int64_t workers = wanted_workers(spec).value_or(1);
  return {.workers = workers, .processors = worker_processors(cores.usable, cores.usable, workers)};
}

}  // namespace lockstep
