// The collectives over shared segments.
//
// Direct: buffers in the arenas are read where they are. Each rank completes the tree for its slice of the
// elements, reading the partial sums of everybody, and writes the root into everybody's buffer: every byte is
// read once and written once per rank, with one stage before and one after. Small data, and buffers elsewhere
// in memory, go through mailboxes: every rank shows its own and reads the others' in one stage.
#pragma once
#include "comm/shm/stages.h"

namespace lockstep::shm {

class Collectives {
 public:
  Collectives(const Members& members, const Watch& watch) : members_(members), stages_(members, watch) {}

  void run(const Collective& collective, const SumProgram& program);

 private:
  bool is_direct(const Collective& collective) const;
  void reduce_direct(const Collective& collective, const SumProgram& program);
  void reduce_by_mailbox(const Collective& collective, const SumProgram& program);
  void gather_direct(const Collective& collective);
  void gather_by_mailbox(const Collective& collective);
  void broadcast_direct(const Collective& collective);
  void broadcast_by_mailbox(const Collective& collective);
  void exchange_direct(const Collective& collective);
  void exchange_by_mailbox(const Collective& collective);
  void moving(const Collective& collective);
  std::vector<int> peers() const;

  const Members& members_;
  Stages stages_;
};

}  // namespace lockstep::shm
