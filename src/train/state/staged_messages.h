// StagedMessages: messages of a group about what lies on the device.
//
// Where the device has memory of its own, they go a piece at a time through memory of the host; all ranks of
// a group have the same kind of device.
#pragma once
#include <memory>
#include <string>

#include "backend/backend.h"
#include "comm/group.h"

namespace lockstep {

class StagedMessages {
 public:
  explicit StagedMessages(Backend& backend) : backend_(backend) {}

  // Behind what was put on the compute stream so far, and over on return.
  void send(Group& group, int peer, const void* from, int64_t bytes);
  void receive(Group& group, int peer, void* into, int64_t bytes);
  void broadcast(Group& group, int root, void* data, int64_t bytes, const std::string& label);

 private:
  // Calls body(pointer to the piece on the device, its place in memory of the host).
  template <typename Body>
  void in_pieces(void* data, int64_t bytes, const Body& body);
  bool in_host_memory() const { return backend_.memory() == MemoryKind::kHost; }

  Backend& backend_;
  std::unique_ptr<Buffer> piece_;  // pinned; made with the first message
};

}  // namespace lockstep
