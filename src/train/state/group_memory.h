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

// Of this worker's too: what a device with memory of its own sends and receives through the host, which it
// copies fast.
class StagingMemory {
 public:
  StagingMemory() = default;
  StagingMemory(Group& group, Backend& backend, int64_t bytes)
      : memory_(group.allocate(bytes)), pinned_(backend.pin(memory_.data(), bytes)) {}

  std::byte* data() const { return memory_.data(); }
  int64_t bytes() const { return memory_.bytes(); }

 private:
  SharedBuffer memory_;
  std::shared_ptr<void> pinned_;
};

}  // namespace lockstep
