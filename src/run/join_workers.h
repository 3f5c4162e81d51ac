// How a worker process of a run meets the others.
#pragma once
#include <memory>
#include <string>

#include "comm/transport.h"
#include "launch/placement.h"
#include "run/job_parts.h"

namespace lockstep {

// The roll call (all must have the same version, job and data), then the transport, whose waits end with the
// job's deadline. UserError names the worker that differs, and in what; UserError, too, for workers on
// several hosts, which no transport here joins.
std::unique_ptr<Transport> join_workers(const WorkerPlace& placement, const JobParts& parts);

}  // namespace lockstep
