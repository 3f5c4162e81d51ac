// Waiting for peers: spins briefly (or makes way for others, where there are more ranks than processors),
// then sleeps until somebody rings, and looks around while it waits.
//
// A sleeping rank wakes ten times a second to see whether a peer has died, failed or left. After `stall` it
// logs who waits for whom; after `deadline` it gives up with that verdict. Nothing here changes a bit of any
// result.
#pragma once
#include <immintrin.h>
#include <sched.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/peer_error.h"
#include "comm/shm/members.h"
#include "comm/transport.h"

namespace lockstep::shm {

class Watch {
 public:
  Watch(const Members& members, WaitLimits limits);

  // Returns once ready() holds, which something that `peer` does will make true. operation() is the text of
  // what is waited in. Throws PeerError.
  template <typename Ready, typename Operation>
  void until(const Ready& ready, int peer, const Operation& operation) const {
    for (int spin = 0; spin < spins_; ++spin) {
      if (ready()) return;
      _mm_pause();
    }
    for (int turn = 0; turn < yields_; ++turn) {
      if (ready()) return;
      sched_yield();
    }
    Waiting waiting{peer, steady_now_ns(), limits_.stall};
    int64_t next_look = waiting.start_ns + kGlanceNs;
    while (!ready()) {
      if (moves_) moves_();
      sleep_unless(ready);
      if (moves_ && steady_now_ns() < next_look) continue;
      next_look = steady_now_ns() + kGlanceNs;
      if (meanwhile_ && !ready()) meanwhile_();
      const auto trouble = look_around(waiting, operation);
      // A peer may have done its part and left between the two looks.
      if (trouble && !ready()) throw PeerError(*trouble);
    }
  }

  // What a sleeping rank does ten times a second, beside looking at its peers; it may throw.
  void set_meanwhile(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

  // What moves the messages of another group while this rank waits here; nobody of this one wakes it for
  // that.
  void set_moves(std::function<void()> moves) { moves_ = std::move(moves); }

  // To be called after something has changed that a peer may wait for.
  void ring(int peer) const;
  void ring_all() const;

  // What a rank was last seen doing, as a clause.
  std::string last_did(int rank) const;

 private:
  static constexpr int64_t kGlanceNs = 100'000'000;
  static constexpr int64_t kMoveNs = 200'000;
  struct Waiting {
    int peer;
    int64_t start_ns;
    std::chrono::milliseconds next_report;
  };
  template <typename Ready>
  void sleep_unless(const Ready& ready) const {
    SegmentHeader& own = members_.own().header();
    const uint32_t seen = own.bell.load();
    own.sleepers.fetch_add(1);
    // Either this sees the change, or the one who made it sees the sleeper.
    if (!ready()) sleep_on(own.bell, seen, moves_ ? kMoveNs : kGlanceNs);
    own.sleepers.fetch_sub(1);
  }
  static void sleep_on(std::atomic<uint32_t>& word, uint32_t seen, int64_t at_most_ns);
  std::optional<PeerError> look_around(Waiting& waiting, const std::function<std::string()>& operation) const;
  std::optional<PeerError> broken_group(const std::function<std::string()>& operation) const;
  bool is_dead(int rank) const;
  // By a signal or a debugger.
  bool is_stopped(int rank) const;
  Condition condition(int rank) const;
  bool is_here(int number) const { return members_.line.index(number) >= 0; }
  // A rank, and what it was doing when that was read.
  struct Link {
    int rank;
    LedgerEntry entry;
    bool stopped;
  };
  Link link_of(int rank) const;
  std::string text_of_link(const Link& link) const;
  // For whom a rank waits, if for another than this one; maybe for one that is not here.
  std::optional<int> next_of(const Link& link) const;
  // From a rank along "waits for" to one that waits for nobody here.
  std::vector<Link> chain_from(int rank) const;
  // The number of the one that everybody waits for.
  int end_of(const std::vector<Link>& chain) const;
  std::string text_of_chain(const std::vector<Link>& chain) const;

  const Members& members_;
  WaitLimits limits_;
  int spins_;
  int yields_;
  std::function<void()> meanwhile_;
  std::function<void()> moves_;
};

}  // namespace lockstep::shm
