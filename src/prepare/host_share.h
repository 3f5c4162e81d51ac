// What a worker has of its host: which of the host's workers it is, and its part of processors and memory.
//
// Workers of other hosts take nothing here, so a job's workers in all do not matter. Where a launcher has
// bound every worker to cores of its own (Slurm and MPI do), these are its part already.
#pragma once
#include <cstdint>
#include <optional>

#include "base/cores.h"
#include "job/spec.h"
#include "launch/placement.h"

namespace lockstep {

struct HostShare {
  int64_t local_rank = 0;  // among the workers of this host; a worker's device is chosen by it
  int64_t workers = 1;     // of this host
  int processors = 1;      // for this worker

  // Its part of what the host has available.
  int64_t memory(int64_t available) const { return available / workers; }
};

// Its part of `together`, the cores that all workers of the host may use, but no more than it may use itself:
// 16 cores and 4 workers make 4, whether each may run on all 16 or is bound to 4 of them.
int worker_processors(int64_t usable, int64_t together, int64_t workers);

// Of a worker that a launcher started at this place; without one it is alone.
HostShare host_share(const std::optional<WorkerPlace>& place, const Cores& cores = available_cores());
// Of a job's first worker before any is started: all that the job asks for are on this machine.
HostShare expected_share(const JobSpec& spec, const Cores& cores = available_cores());

}  // namespace lockstep
