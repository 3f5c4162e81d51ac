// StagingRing: small pieces of the host's memory on their way to the device, while the host goes on.
//
// Each piece is copied into the next pinned slot of a ring and from there to the device, in the order of the
// compute stream; a slot is used again when its copy has run. Where the device works in the host's memory, a
// piece is written where it belongs.
#pragma once
#include <memory>
#include <vector>

#include "backend/backend.h"

namespace lockstep {

class StagingRing {
 public:
  StagingRing(Backend& backend, int64_t slot_bytes, int slots = 8);

  // At most slot_bytes. The host's memory may be reused on return.
  void send(void* device, const void* host, int64_t bytes);

 private:
  struct Slot {
    std::unique_ptr<Buffer> memory;
    EventPtr copied;
  };
  Backend& backend_;
  int64_t slot_bytes_;
  std::vector<Slot> slots_;  // none where the device works in the host's memory
  size_t next_ = 0;
};

}  // namespace lockstep
