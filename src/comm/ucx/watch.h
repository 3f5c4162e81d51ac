// Waiting for peers on other hosts: looks around meanwhile, says who waits for whom, and ends at the
// deadline.
//
// A peer whose process ends closes its connections, which is noticed at once. One that is stopped says
// nothing: half-way to the first report every rank tells the others for whom it waits, so that reports and
// verdicts name the one that everybody waits for. A failure is passed on to all peers before it is thrown,
// while the connections still stand.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/peer_error.h"
#include "comm/ucx/peers.h"

namespace lockstep::ucx {

class Watch {
 public:
  using Operation = std::function<std::string()>;

  Watch(Worker& worker, Peers& peers, WaitLimits limits);

  // Returns once ready() holds, which something that `peer` does will make true. operation() is the text of
  // what is waited in. Throws PeerError.
  template <typename Ready>
  void until(Worker::Lock& lock, const Ready& ready, int peer, const Operation& operation) {
    Waiting waiting{peer, steady_now_ns(), first_notice(), limits_.stall};
    worker_.drive(lock, ready, [&] {
      if (moves_) moves_();
      const auto trouble = look_around(waiting, operation);
      // A peer may have done its part and left between the two looks.
      if (trouble && !ready()) fail_with(*trouble);
    });
  }

  // What moves the messages of another group while this rank waits here, ten times a second.
  void set_moves(std::function<void()> moves) { moves_ = std::move(moves); }

  // Enters a collective: tells the peers, and compares theirs. Throws PeerError when one is in another.
  void enter(const Collective& collective);
  void leave(bool finished);
  // The collective that this rank is in.
  const Collective* current() const { return current_; }
  // Whether a peer is known to have entered the same collective; what it sends may then be used.
  bool agrees(int rank);

  // While this rank waits for something else than messages: see MessagePort.
  void glance();

  // This rank has failed: its waits end with the verdict, and so do those of its peers. The first one stays.
  void give_up(int culprit, std::string_view verdict);
  // Gives up and throws.
  [[noreturn]] void fail_with(const PeerError& error);
  // The same, because the connection to a peer failed.
  [[noreturn]] void lost(int peer, ucs_status_t status, const Operation& operation);
  // Tells the peers that this rank leaves, unless it has given up.
  void say_goodbye();
  // Gives the peers a moment to hear the last that was said: one moment in all, however often it is called.
  void linger(Worker::Lock& lock);

  // What this rank does: its collectives, and the messages of its caller.
  Ledger& collectives() { return collectives_; }
  Ledger& messages() { return messages_; }
  std::string last_did(int rank) const;

 private:
  struct Waiting {
    int peer;
    int64_t start_ns;
    std::chrono::milliseconds next_notice;
    std::chrono::milliseconds next_report;
  };
  std::chrono::milliseconds first_notice() const;
  std::optional<PeerError> look_around(Waiting& waiting, const Operation& operation);
  std::optional<PeerError> broken_group(const Operation& operation) const;
  std::optional<PeerError> find_stray();
  LedgerEntry entry_of(int rank) const;
  LedgerEntry entry_of_current(LedgerState state) const;
  std::vector<int> chain_from(int rank) const;
  std::string chain_text(int rank) const;

  Worker& worker_;
  Peers& peers_;
  WaitLimits limits_;
  Ledger collectives_ = {};
  Ledger messages_ = {};
  const Collective* current_ = nullptr;
  Call call_ = {};
  struct Verdict {
    int culprit;
    std::string text;
  };
  std::optional<Verdict> verdict_;
  int64_t linger_end_ns_ = 0;
  // The last wait for somebody else than a sender that was told.
  uint64_t told_number_ = 0;
  int told_rank_ = -1;
  std::function<void()> moves_;
};

}  // namespace lockstep::ucx
