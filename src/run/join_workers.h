// How a worker process of a run meets the others.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "comm/transport.h"
#include "launch/placement.h"
#include "prepare/job_parts.h"
#include "run/workers.h"

namespace lockstep {

struct JoinOptions {
  std::map<std::string, std::string> same = {};  // what all must have alike, beside the version
  WorkerTransport transport = WorkerTransport::kAuto;
  WaitLimits limits = {};
  // Reduction Servers that all large sums go through, and the leaves of these; none: 0.
  int64_t servers = 0;
  int64_t leaves = 0;
};
std::unique_ptr<Transport> join_workers(const WorkerPlace& placement, const JoinOptions& options);

// The roll call (all must have the same version, job and data), then the groups, whose waits end with the
// job's deadline: shared memory on one host, with UCX between several, or what strategy.transport says; and
// the Reduction Servers that the job asks for. One group of all workers, and one along each axis of the
// job's mesh. UserError names the worker that differs, and in what.
JoinedWorkers join_workers(const WorkerPlace& placement, const JobParts& parts);

}  // namespace lockstep
