// Ranks on several hosts: those of one host share memory, the others exchange messages.
//
// Everything here speaks of ranks by their numbers among all of them, and errors name the host as well.
#pragma once
#include "comm/peer_error.h"
#include "comm/wire/collectives.h"

namespace lockstep::wire {

class HostsTransport : public Transport {
 public:
  // `between` joins all ranks; `local` those of this host, told by ShmOptions::first_rank what they are
  // called. `local` is null where the map has one rank on every host.
  HostsTransport(const HostMap& map, std::unique_ptr<shm::ShmTransport> local,
                 std::unique_ptr<Transport> between);
  ~HostsTransport() override;
  HostsTransport(const HostsTransport&) = delete;
  HostsTransport& operator=(const HostsTransport&) = delete;

  int rank() const override { return between_->rank(); }
  int size() const override { return between_->size(); }
  std::string_view name() const override { return name_; }
  int number(int rank) const override { return between_->number(rank); }
  std::byte* allocate(int64_t bytes) override { return memory().allocate(bytes); }
  void release(std::byte* memory) noexcept override { this->memory().release(memory); }
  // Of ranks with a host of their own each, whatever the messages between them go through.
  std::optional<HostPlace> host() const override { return local_ ? local_->host() : std::nullopt; }
  int64_t name_of_memory(const std::byte* memory) const override {
    return this->memory().name_of_memory(memory);
  }
  std::byte* memory_of(int index, int64_t name) const override { return memory().memory_of(index, name); }
  void run(const Collective& collective, const SumProgram& program) override;
  std::unique_ptr<Message> start_send(int peer, std::span<const std::byte> data) override;
  std::unique_ptr<Message> start_receive(int peer, std::span<std::byte> data) override;
  void wait(Message& message) override;
  void move() override;
  void while_waiting(std::function<void()> moves) override;
  void fail(int culprit, std::string_view verdict) noexcept override;
  Ledger& ledger() override { return between_->ledger(); }
  std::string last_did(int rank) const override;
  int64_t network_bytes() const override { return between_->network_bytes(); }

 private:
  struct Routed;
  Transport& memory() const { return local_ ? static_cast<Transport&>(*local_) : *between_; }
  bool is_neighbour(int peer) const;
  // The host of the rank that errors call `number`; empty where it is none of these.
  std::string host_of(int number) const;
  template <typename Start>
  std::unique_ptr<Message> route(int peer, const Start& start);
  // Adds the culprit's host to what went wrong.
  template <typename Body>
  void naming_hosts(const Body& body);
  void run_noted(const Collective& collective, const SumProgram& program);

  std::string name_;
  std::unique_ptr<shm::ShmTransport> local_;
  // Has memory that messages of `between_` may still be on their way to: that one goes first.
  std::unique_ptr<Collectives> collectives_;
  std::unique_ptr<Transport> between_;
};

}  // namespace lockstep::wire
