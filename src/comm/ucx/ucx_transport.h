// Ranks on different hosts, joined by UCX: TCP, or RDMA where there is some.
//
// Collectives are made of messages (comm/wire); in run() every rank is a host of its own. Peers are told
// which collective a rank enters before its data comes, so that different calls are found out.
#pragma once
#include <map>
#include <mutex>

#include "comm/ucx/messages.h"
#include "comm/wire/collectives.h"

namespace lockstep::ucx {

class UcxTransport : public Transport {
 public:
  // Returns when all ranks are connected. PeerError names who did not come before the meeting's deadline.
  UcxTransport(int rank, int size, const Exchange& exchange, const UcxOptions& options);
  // Peers who still wait for this rank learn that it has left.
  ~UcxTransport() override;
  UcxTransport(const UcxTransport&) = delete;
  UcxTransport& operator=(const UcxTransport&) = delete;

  int rank() const override { return peers_.rank(); }
  int size() const override { return peers_.size(); }
  std::string_view name() const override { return "ucx"; }
  int number(int rank) const override { return peers_.number(rank); }
  // Zeros, aligned to a page. Any other memory does as well.
  std::byte* allocate(int64_t bytes) override;
  void release(std::byte* memory) noexcept override;
  void run(const Collective& collective, const SumProgram& program) override;
  std::unique_ptr<Message> start_send(int peer, std::span<const std::byte> data) override;
  std::unique_ptr<Message> start_receive(int peer, std::span<std::byte> data) override;
  void wait(Message& message) override { messages_.wait(message); }
  void move() override;
  void while_waiting(std::function<void()> moves) override { watch_.set_moves(std::move(moves)); }
  MessagePort& collective_messages() override { return collective_port_; }
  void fail(int culprit, std::string_view verdict) noexcept override;
  Ledger& ledger() override { return watch_.collectives(); }
  std::string last_did(int rank) const override;
  int64_t network_bytes() const override { return messages_.sent_bytes(); }

 private:
  class Port : public MessagePort {
   public:
    explicit Port(UcxTransport& transport) : transport_(transport) {}
    int rank() const override { return transport_.rank(); }
    int size() const override { return transport_.size(); }
    std::unique_ptr<Message> start_send(int peer, std::span<const std::byte> data) override;
    std::unique_ptr<Message> start_receive(int peer, std::span<std::byte> data) override;
    void wait(Message& message) override { transport_.wait(message); }
    void enter(const Collective& collective) override;
    void leave(bool finished) noexcept override;
    void flush() override;
    void glance() override;

   private:
    UcxTransport& transport_;
  };
  void meet(const Exchange& exchange, std::chrono::milliseconds deadline);

  mutable Worker worker_;
  Peers peers_;
  Watch watch_;
  Messages messages_;
  Port collective_port_;
  wire::Collectives collectives_;
  std::mutex memory_mutex_;
  std::map<std::byte*, size_t> memory_;
};

// Joins as one rank of `size`. Call it in the process that uses it: what UCX sets up does not survive a fork.
std::unique_ptr<Transport> join(int rank, int size, const Exchange& exchange, const UcxOptions& options = {});

}  // namespace lockstep::ucx
