// How a worker process of a run meets the others.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "comm/transport.h"
#include "launch/placement.h"
#include "prepare/job_parts.h"

namespace lockstep {

struct JoinOptions {
  std::map<std::string, std::string> same = {};  // what all must have alike, beside the version
  WorkerTransport transport = WorkerTransport::kAuto;
  WaitLimits limits = {};
};
std::unique_ptr<Transport> join_workers(const WorkerPlace& placement, const JoinOptions& options);

// The roll call (all must have the same version, job and data), then the transport, whose waits end with the
// job's deadline: shared memory on one host, with UCX between several, or what strategy.transport says.
// UserError names the worker that differs, and in what.
std::unique_ptr<Transport> join_workers(const WorkerPlace& placement, const JobParts& parts);

}  // namespace lockstep
