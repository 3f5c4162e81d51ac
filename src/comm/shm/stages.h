// How the ranks of a segment group go through a collective together: stage by stage.
//
// A rank enters a stage by writing a record (what it runs, where its buffers are) and counting its stage up;
// it goes on when every peer has entered the same stage with the same call. Records and mailboxes alternate
// between two places: a peer that still reads those of stage i has not entered i + 1, and this rank does not
// write i + 2 before all have. So small data needs one stage, and no other handshake.
#pragma once
#include <span>

#include "comm/shm/watch.h"

namespace lockstep::shm {

class Stages {
 public:
  Stages(const Members& members, const Watch& watch) : members_(members), watch_(watch) {}

  // Enters a stage and waits for everybody. Throws PeerError when a peer is in another call.
  void meet(const Collective& collective, bool direct);
  // The same, with `buffers` shown to the peers: addresses in this rank's segment.
  void meet(const Collective& collective, bool direct, std::span<std::byte* const> buffers);
  // Shown to all in the next stage; rank 0's choice is read in it.
  void propose(bool through_caches) { proposal_ = through_caches; }
  bool through_caches() const { return record_of(0).through_caches; }
  // Where this rank may put data before it enters the next stage, and where a peer's data of this stage is.
  std::byte* next_mailbox() const { return members_.own().mailbox(stage_ + 1); }
  const std::byte* mailbox_of(int peer) const { return members_.of(peer).mailbox(stage_); }
  // A peer's buffer of this stage, as mapped here.
  std::byte* buffer_of(int peer, int64_t index) const;
  int64_t buffers_of(int peer) const { return record_of(peer).buffers; }
  // Another ledger that is told for whom this rank waits, beside the one in its segment.
  void also_note(Ledger* ledger) { also_ = ledger; }

 private:
  const StageRecord& record_of(int peer) const { return members_.of(peer).header().records[stage_ % 2]; }
  void note_wait(const Collective& collective, int number);
  void require_same(const Collective& collective, const Call& call, int peer) const;

  const Members& members_;
  const Watch& watch_;
  uint32_t stage_ = 0;
  bool proposal_ = false;
  Ledger* also_ = nullptr;
};

}  // namespace lockstep::shm
