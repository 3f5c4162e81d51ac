// Memory of a group as buffers of a training step.
#pragma once
#include <memory>

#include "backend/backend.h"
#include "comm/group.h"

namespace lockstep {

// This worker's own, which its peers read and write in place.
std::unique_ptr<Buffer> peer_memory(Group& group, int64_t bytes);
// One for all workers of the host, who call this together.
std::unique_ptr<Buffer> host_memory(Group& group, int64_t bytes);

}  // namespace lockstep
