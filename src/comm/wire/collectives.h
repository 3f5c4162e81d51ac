// The collectives over several hosts: inside each host first, then between them, and still the canonical
// tree.
//
// What crosses a link is the least that can: a host's partial sums of a chunk go once to the rank that owns
// the chunk, the result comes back once, and the ranks of a host share both through memory. With one rank on
// every host this is a direct reduce-scatter and all-gather. Which way a collective goes depends on its size
// alone and on whether neighbours can reach the buffers: all ranks decide alike.
#pragma once
#include <array>
#include <optional>

#include "comm/transport.h"
#include "comm/wire/chain.h"
#include "comm/wire/pipeline.h"
#include "comm/wire/rounds.h"

namespace lockstep::wire {

class Collectives {
 public:
  // `local` joins the ranks of this host; null where the map has one rank on every host. Messages may be
  // under way when a collective has failed: what moves those of the port must be destroyed before this is.
  Collectives(HostMap map, MessagePort& port, shm::ShmTransport* local);

  const HostMap& map() const { return map_; }
  void run(const Collective& collective, const SumProgram& program);

 private:
  void move(const Collective& collective, const SumProgram& program);
  const HostSums& sums_of(const Collective& collective, const SumProgram& program);
  void exchange(const Collective& collective);

  HostMap map_;
  Courier courier_;
  Pipeline::Memory memory_;
  Rounds::Memory rounds_memory_;
  Rounds rounds_;
  std::array<std::optional<HostSums>, 2> sums_;  // by order
};

}  // namespace lockstep::wire
