// Messages between two ranks through shared memory.
//
// The sender shows where its data is, the receiver copies it from there: one copy for data in the arena.
// Other memory goes piece by piece through a mailbox. Whoever waits moves all messages of this rank that can
// be moved, so two ranks that send to each other first and receive afterwards do not block.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "comm/shm/watch.h"

namespace lockstep::shm {

class Messages {
 public:
  Messages(const Members& members, const Watch& watch);

  std::unique_ptr<Message> start_send(int peer, std::span<const std::byte> data);
  std::unique_ptr<Message> start_receive(int peer, std::span<std::byte> data);
  void wait(Message& message);
  // Moves what can be moved without waiting.
  void advance();

 private:
  struct State {
    CollectiveKind kind;
    int peer;
    std::byte* data;  // only read when sending
    int64_t bytes;
    uint64_t number;  // of this kind and peer
    int64_t moved = 0;
    bool shown = false;  // a part of it is in the channel
    bool done() const { return moved == bytes && !shown; }
  };
  struct Handle : Message {
    std::shared_ptr<State> state;
  };
  std::unique_ptr<Message> start(CollectiveKind kind, int peer, std::byte* data, int64_t bytes);
  void advance_send(State& state);
  void advance_receive(State& state);
  Collective describe(const State& state) const;

  using Queue = std::deque<std::shared_ptr<State>>;
  const Members& members_;
  const Watch& watch_;
  std::vector<Queue> sends_;     // by peer
  std::vector<Queue> receives_;  // by peer
  std::vector<uint64_t> started_;
};

}  // namespace lockstep::shm
