// The collectives over shared segments.
//
// Direct: buffers in the arenas are read where they are. Each rank completes the tree for its slice of the
// elements, reading the partial sums of everybody. What fits in the caches stays there: the root is written
// to the rank's own buffer, and the others copy it from there. What does not is written straight into
// everybody's buffer, past the caches: every byte crosses the memory bus once to be read and once to be
// written. Small data, and buffers elsewhere in memory, go through mailboxes: every rank shows its own and
// reads the others' in one stage.
#pragma once
#include "comm/shm/route_choice.h"
#include "comm/shm/stages.h"

namespace lockstep::shm {

class Collectives {
 public:
  Collectives(const Members& members, const Watch& watch);

  void run(const Collective& collective, const SumProgram& program);
  Stages& stages() { return stages_; }

 private:
  bool is_direct(const Collective& collective) const;
  bool fits_in_caches(const Collective& collective, const SumProgram& program) const;
  void reduce_direct(const Collective& collective, const SumProgram& program);
  void reduce_slice(const Collective& collective, const SumProgram& program, bool cached);
  void reduce_by_mailbox(const Collective& collective, const SumProgram& program);
  void gather_direct(const Collective& collective);
  void copy_slices(const Collective& collective, bool streaming);
  void gather_by_mailbox(const Collective& collective);
  void broadcast_direct(const Collective& collective);
  void broadcast_by_mailbox(const Collective& collective);
  void exchange_direct(const Collective& collective);
  void exchange_by_mailbox(const Collective& collective);
  void moving(const Collective& collective);
  std::vector<int> peers() const;

  const Members& members_;
  Stages stages_;
  int64_t cache_bytes_;
  RouteChoice route_;
};

}  // namespace lockstep::shm
