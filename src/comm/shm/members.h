// The ranks of a group that share memory, as one of them sees them.
#pragma once
#include <memory>
#include <vector>

#include "comm/shm/segment.h"

namespace lockstep::shm {

struct Member {
  std::shared_ptr<Segment> segment;
  Fd process;  // a pidfd: readable once the process is gone; none for a thread of this process
  int pid = 0;
};

struct Members {
  int rank = 0;
  // Where these are a host's share of a larger group: the number there of rank 0 here. Messages, verdicts and
  // ledgers speak of ranks by their numbers in the larger group.
  int first = 0;
  std::vector<Member> all;  // by rank, this one included

  int size() const { return static_cast<int>(all.size()); }
  int number(int peer) const { return first + peer; }
  Segment& own() const { return *all[static_cast<size_t>(rank)].segment; }
  Segment& of(int peer) const { return *all[static_cast<size_t>(peer)].segment; }
};

}  // namespace lockstep::shm
