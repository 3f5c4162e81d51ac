// How a worker process of a run meets the others.
#pragma once
#include <memory>
#include <string>

#include "comm/transport.h"
#include "launch/placement.h"

namespace lockstep {

// The roll call (all must run the same version), then the transport. UserError for workers on several hosts,
// which no transport here joins.
std::unique_ptr<Transport> join_workers(const WorkerPlace& placement);

}  // namespace lockstep
