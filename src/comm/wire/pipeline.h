// Large reductions and gathers over hosts, chunk by chunk, so that the links carry data in both directions
// all the time and the sums hide behind them.
//
//   step s:  send this host's partial sums of everybody's chunk s to its owner
//            complete the own chunk s - kAhead, which has come from all hosts by now
//            send its result to all hosts, and write it to this host's ranks
//            pass on to this host's ranks what results have come
//
// Both ends of a pair of ranks start their messages in the order of steps, so that none needs a name. A rank
// waits only for messages that were started kAhead steps ago; the one that is furthest behind never waits for
// something that is not under way, so that all get on.
#pragma once
#include <array>

#include "comm/wire/courier.h"
#include "comm/wire/host_sums.h"
#include "comm/wire/shares.h"

namespace lockstep::wire {

class Pipeline {
 public:
  static constexpr int64_t kAhead = 4;
  static constexpr size_t kSlots = kAhead + 1;

  // Where chunks are on their way. Kept from one collective to the next: it is only grown. It must live as
  // long as the courier's messages may.
  struct Memory {
    std::array<std::vector<std::byte>, kSlots> outgoing;
    std::array<std::vector<std::byte>, kSlots> incoming;
  };

  // `sums` is null for a gather.
  Pipeline(Courier& courier, Memory& memory, const Collective& collective, const HostSums* sums);
  void run();

 private:
  bool gathers() const { return collective_.kind != CollectiveKind::kReduceScatter; }
  static size_t slot(int64_t step) { return static_cast<size_t>(step) % kSlots; }
  int64_t bytes_of(Slice slice) const { return slice.size() * collective_.element; }
  std::byte* own(Slice slice) const { return collective_.buffers[0] + slice.begin * collective_.element; }
  // This host's partial sums of a slice, rank by rank.
  std::vector<const std::byte*> sources_here(Slice slice) const;
  // The slice in the buffers of all ranks of this host, this one's first.
  std::vector<std::byte*> places_here(Slice slice) const;
  // The ranks of other hosts, those after this one first.
  std::vector<int> distant_ranks() const;

  void send_partials(int64_t step);
  void send_combined(int owner, Slice chunk, std::byte* into, Flights& flights);
  void expect_partials(int64_t chunk);
  void expect_results(int64_t chunk);
  void finish_own(int64_t chunk, Flights& sends);
  void complete(Slice chunk, size_t incoming);
  void pass_on_results(int64_t chunk);
  void copy_to_neighbours(Slice chunk);

  Courier& courier_;
  Memory& memory_;
  const Collective& collective_;
  const HostSums* sums_;
  Shares shares_;
  std::vector<int> distant_;
  std::vector<std::vector<std::byte*>> here_;  // buffers by local rank
  std::array<Flights, kSlots> sends_, partials_, results_;
};

}  // namespace lockstep::wire
