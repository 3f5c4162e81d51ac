// Ordered messages between two ranks: what collectives between hosts are made of.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

namespace lockstep {

struct Collective;

// A message under way between two ranks.
class Message {
 public:
  virtual ~Message() = default;
};

class MessagePort {
 public:
  virtual ~MessagePort() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Messages between two ranks arrive in the order in which they were started; both sides name the same size.
  // The memory must stay as it is until the wait for the message is over. Any number may be under way.
  virtual std::unique_ptr<Message> start_send(int peer, std::span<const std::byte> data) = 0;
  virtual std::unique_ptr<Message> start_receive(int peer, std::span<std::byte> data) = 0;
  // Moves whatever can be moved, and returns when this message is over. Throws PeerError.
  virtual void wait(Message& message) = 0;
  // Moves what can be moved without waiting: for a rank that waits in another group.
  virtual void move() {}

  // Around the messages of one collective. A port between hosts tells the peers that this rank is in it and
  // compares their calls: PeerError, here or in a wait, when one is in another. The collective stays until
  // leave(), which says whether it was finished.
  virtual void enter(const Collective& /*collective*/) {}
  virtual void leave(bool /*finished*/) noexcept {}
  // Before a rank waits for something else than messages: returns when what it has sent is on its way.
  virtual void flush() {}
  // For a rank that waits for something else than messages, now and then: takes in what peers have said and
  // tells them for whom it waits. PeerError when the group is broken.
  virtual void glance() {}
};

}  // namespace lockstep
