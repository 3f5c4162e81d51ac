// The collectives over shared segments.
//
// Direct: buffers in the arenas are read where they are. Each rank completes the tree for its slice of the
// elements, reading the partial sums of everybody, and writes the root straight into everybody's buffer: no
// line of memory changes hands more than once, and every byte is read once and written once. The lines that
// are written are those that have just been read, so that plain stores find them in the cache; stores past
// the caches, which save reading a line before it is written, have nothing to save. Small data, and buffers
// elsewhere in memory, go through mailboxes: every rank shows its own and reads the others' in one stage.
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
  RouteChoice to_all_, to_own_;  // of all_reduce, of reduce_scatter
};

}  // namespace lockstep::shm
