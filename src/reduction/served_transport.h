// Large sums through Reduction Servers; everything else, and what a lost server leaves undone, through the
// transport underneath.
//
// The elements of an all_reduce are cut into chunks, which are dealt out to the servers in turns. On every
// host one rank, the carrier of a chunk, adds up what its neighbours have of it (comm/wire/host_sums.h),
// sends it once, gets the root once, and writes it to its neighbours. The servers complete the canonical
// tree, so that the bits are those of every other route. All hosts send chunks in the same order, a window
// of them ahead.
//
// A root is written over a partial sum only when all of it has come. So at any time a host has of every
// chunk either its partial sums or the root, and a collective in which a server was lost can always be
// completed: each collective ends with a word of everybody whether anything is missing; if so, a chunk that
// some host has the root of is broadcast from there, and one that nobody has is summed directly.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "comm/served_figures.h"
#include "comm/transport.h"
#include "comm/wire/courier.h"
#include "comm/wire/host_sums.h"
#include "reduction/link.h"

namespace lockstep::reduction {

// How a run's ranks are served.
struct ServedOptions {
  wire::HostMap map;                   // every rank on a host of its own where none share a stream
  shm::ShmTransport* local = nullptr;  // what joins the ranks of this host; lives in the transport underneath
  LeafSplit split;                     // of the group that the transport is for
  WaitLimits limits;
};

class ServedTransport : public Transport {
 public:
  ServedTransport(std::unique_ptr<Transport> under, std::vector<std::unique_ptr<ServerLink>> links,
                  const ServedOptions& options);
  ~ServedTransport() override;
  ServedTransport(const ServedTransport&) = delete;
  ServedTransport& operator=(const ServedTransport&) = delete;

  void run(const Collective& collective, const SumProgram& program) override;
  const ServedFigures* served() const override;
  int64_t network_bytes() const override;
  std::string_view name() const override { return name_; }
  void fail(int culprit, std::string_view verdict) noexcept override;

  int rank() const override { return under_->rank(); }
  int size() const override { return under_->size(); }
  int number(int rank) const override { return under_->number(rank); }
  std::byte* allocate(int64_t bytes) override { return under_->allocate(bytes); }
  void release(std::byte* memory) noexcept override { under_->release(memory); }
  std::optional<HostPlace> host() const override { return under_->host(); }
  int64_t name_of_memory(const std::byte* memory) const override { return under_->name_of_memory(memory); }
  std::byte* memory_of(int index, int64_t name) const override { return under_->memory_of(index, name); }
  std::unique_ptr<Message> start_send(int peer, std::span<const std::byte> data) override {
    return under_->start_send(peer, data);
  }
  std::unique_ptr<Message> start_receive(int peer, std::span<std::byte> data) override {
    return under_->start_receive(peer, data);
  }
  void wait(Message& message) override { under_->wait(message); }
  void move() override { under_->move(); }
  void while_waiting(std::function<void()> moves) override { under_->while_waiting(std::move(moves)); }
  MessagePort& collective_messages() override { return under_->collective_messages(); }
  Ledger& ledger() override { return under_->ledger(); }
  std::string last_did(int rank) const override { return under_->last_did(rank); }

 private:
  class ServedSum;

  bool goes_to_servers(const Collective& collective) const;
  void reduce(const Collective& collective, const SumProgram& program);
  void complete(const Collective& collective, const SumProgram& program, ServedSum& sum);
  void note_lost(const Collective& collective, const std::vector<std::string>& lost, int64_t chunks);

  std::unique_ptr<Transport> under_;
  ServedOptions options_;
  std::vector<std::unique_ptr<ServerLink>> links_;
  wire::Courier courier_;
  wire::HostSums sums_;
  SumProgram over_ranks_;  // one number of each
  std::string name_;
  std::vector<int> alive_;  // servers that all ranks still use
  mutable ServedFigures figures_;
  std::atomic<bool> failed_ = false;
};

}  // namespace lockstep::reduction
