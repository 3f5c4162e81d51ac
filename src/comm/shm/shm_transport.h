// Ranks on one host, each a process or a thread, joined by shared memory.
//
// They may be a host's share of a larger group (comm/wire): then its collectives go through meet(), which
// shows the buffers of this host's ranks to each other and does nothing else.
#pragma once
#include "comm/shm/arena.h"
#include "comm/shm/collectives.h"
#include "comm/shm/messages.h"

namespace lockstep::shm {

class ShmTransport : public Transport {
 public:
  // The members' own segment is this rank's. All ranks have met already (comm/shm/meeting.h).
  ShmTransport(Members members, WaitLimits limits);
  // Peers who still wait for this rank learn that it has left.
  ~ShmTransport() override;

  int rank() const override { return members_.rank; }
  int size() const override { return members_.size(); }
  std::string_view name() const override { return "shm"; }
  int number(int rank) const override { return members_.number(rank); }
  std::byte* allocate(int64_t bytes) override { return arena_.allocate(bytes); }
  void release(std::byte* memory) noexcept override { arena_.release(memory); }
  std::optional<HostPlace> host() const override { return HostPlace{members_.rank, members_.size()}; }
  int64_t name_of_memory(const std::byte* memory) const override { return members_.own().offset_of(memory); }
  std::byte* memory_of(int index, int64_t name) const override { return members_.of(index).at(name); }
  void run(const Collective& collective, const SumProgram& program) override;
  std::unique_ptr<Message> start_send(int peer, std::span<const std::byte> data) override;
  std::unique_ptr<Message> start_receive(int peer, std::span<std::byte> data) override;
  void wait(Message& message) override { messages_.wait(message); }
  void move() override { messages_.advance(); }
  void while_waiting(std::function<void()> moves) override { watch_.set_moves(std::move(moves)); }
  void fail(int culprit, std::string_view verdict) noexcept override;
  Ledger& ledger() override { return members_.own().header().collectives; }
  std::string last_did(int rank) const override { return watch_.last_did(rank); }

  // Enters a stage of the collective, shows these buffers of the arena, and waits until all ranks have shown
  // theirs, which may be read and written until the next meeting.
  void meet(const Collective& collective, bool direct, std::span<std::byte* const> buffers) {
    collectives_.stages().meet(collective, direct, buffers);
  }
  std::byte* buffer_of(int peer, int64_t index) { return collectives_.stages().buffer_of(peer, index); }
  int64_t buffers_of(int peer) { return collectives_.stages().buffers_of(peer); }
  // The larger group's ledger learns for whom this rank waits here, and `meanwhile` is called ten times a
  // second while it does. Without arguments: no longer.
  void look_beyond(Ledger* ledger = nullptr, std::function<void()> meanwhile = {}) {
    collectives_.stages().also_note(ledger);
    watch_.set_meanwhile(std::move(meanwhile));
  }
  // Whether the peers can reach this memory.
  bool holds(const std::byte* memory, int64_t bytes) const { return members_.own().holds(memory, bytes); }

 private:
  Members members_;
  Watch watch_;
  Collectives collectives_;
  Messages messages_;
  Arena arena_;
};

}  // namespace lockstep::shm
