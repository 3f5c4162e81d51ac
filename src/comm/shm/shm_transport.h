// Ranks on one host, each a process or a thread, joined by shared memory.
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
  std::byte* allocate(int64_t bytes) override { return arena_.allocate(bytes); }
  void release(std::byte* memory) noexcept override { arena_.release(memory); }
  void run(const Collective& collective, const SumProgram& program) override;
  std::unique_ptr<Message> start_send(int peer, std::span<const std::byte> data) override;
  std::unique_ptr<Message> start_receive(int peer, std::span<std::byte> data) override;
  void wait(Message& message) override { messages_.wait(message); }
  void fail(int culprit, std::string_view verdict) noexcept override;
  Ledger& ledger() override { return members_.own().header().collectives; }
  std::string last_did(int rank) const override { return watch_.last_did(rank); }

 private:
  Members members_;
  Watch watch_;
  Collectives collectives_;
  Messages messages_;
  Arena arena_;
};

}  // namespace lockstep::shm
