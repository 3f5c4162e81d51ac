// The ranks of a group that share memory, as one of them sees them.
#pragma once
#include <memory>
#include <vector>

#include "comm/rank_line.h"
#include "comm/shm/segment.h"

namespace lockstep::shm {

struct Member {
  std::shared_ptr<Segment> segment;
  Fd process;  // a pidfd: readable once the process is gone; none for a thread of this process
  int pid = 0;
};

struct Members {
  int rank = 0;
  // What these ranks are called where they are a part of more: a host's share of a group, or a line of a
  // mesh. Messages, verdicts and ledgers speak of ranks by these numbers.
  RankLine line;
  std::vector<Member> all;  // by rank, this one included

  int size() const { return static_cast<int>(all.size()); }
  int number(int peer) const { return line.number(peer); }
  Segment& own() const { return *all[static_cast<size_t>(rank)].segment; }
  Segment& of(int peer) const { return *all[static_cast<size_t>(peer)].segment; }
};

}  // namespace lockstep::shm
