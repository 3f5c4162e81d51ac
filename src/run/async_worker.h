// A worker of an asynchronous run: takes leases from the coordinator, parameters from the servers, computes
// the gradient of one global batch, and pushes it. It holds no state that anybody would miss.
#pragma once
#include <string>

#include "job/spec.h"
#include "launch/host_port.h"
#include "launch/placement.h"

namespace lockstep {

// Until the coordinator says that the run is over. CommError where it, or a server, is lost.
void run_async_worker(JobSpec spec, const WorkerPlace& place, const HostPort& coordinator,
                      const std::string& token);

}  // namespace lockstep
