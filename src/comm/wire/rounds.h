// Small collectives over hosts: one message between each two of them, and everybody completes the rest.
//
// Latency counts here, not bytes: the ranks of a host lay what they have on boards in their shared memory,
// the first of them adds it up, exchanges it with the first ranks of the other hosts in one round, completes
// the tree and lays the result on its board. Larger data goes the same way, a window at a time, where the
// neighbours cannot reach the buffers.
#pragma once
#include <array>

#include "comm/wire/courier.h"
#include "comm/wire/host_sums.h"

namespace lockstep::wire {

class Rounds {
 public:
  // What is on its way; it must live as long as the courier's messages may.
  struct Memory {
    std::vector<std::byte> outgoing;
    std::vector<std::vector<std::byte>> incoming;  // by host
    std::vector<std::byte> result;
  };
  Rounds(Courier& courier, Memory& memory);

  // `widest` is the most partial sums that a rank has.
  void reduce(const Collective& collective, const HostSums& sums, int64_t widest);
  void gather(const Collective& collective);
  void broadcast(const Collective& collective);
  void barrier(const Collective& collective);

 private:
  template <typename Body>
  void by_window(const Collective& collective, int64_t buffers, const Body& body);
  void reduce_window(const Collective& collective, const HostSums& sums, Slice window);
  void complete(const Collective& collective, const HostSums& sums, Slice window,
                const std::vector<std::vector<std::byte*>>& here, std::byte* place);
  void gather_window(const Collective& collective, Slice window);
  void exchange_gathered(const Collective& collective, Slice window, std::byte* place);
  void broadcast_window(const Collective& collective, Slice window);

  bool leads() const { return courier_.local_rank() == 0; }
  bool alone() const { return courier_.neighbours() == 1; }
  // What ranks `first` to `last`, or those of a host, own of a window.
  Slice of_ranks(const Collective& collective, Slice window, int first, int last) const;
  Slice of_host(const Collective& collective, Slice window, int host) const;

  // Room for a message of so many bytes to the other hosts, and the message of one of them.
  std::byte* outgoing(int64_t bytes);
  const std::byte* incoming(int host) const;
  struct Expected {
    int host;
    int64_t bytes;
  };
  // Sends what is in outgoing() to the first ranks of some hosts, and receives from those of others.
  void exchange(const Collective& collective, const std::vector<int>& to, const std::vector<Expected>& from);

  Courier& courier_;
  Memory& memory_;
  // By turns: a neighbour may still read the last one. For that reason they stay until the segment goes.
  std::array<std::byte*, 2> boards_ = {};
  std::byte* board_ = nullptr;
  uint64_t turn_ = 0;
};

}  // namespace lockstep::wire
