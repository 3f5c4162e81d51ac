// The other ranks: the connections to them, and what is known of each.
//
// All members are used with the worker's lock held. What peers say, and how their connections fare, is
// learned while somebody drives the worker.
#pragma once
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "comm/peer_error.h"
#include "comm/rank_line.h"
#include "comm/ucx/notice.h"
#include "comm/ucx/worker.h"

namespace lockstep::ucx {

class Peers;

struct Peer {
  Peers* peers = nullptr;
  int rank = 0;
  std::string host = {};
  int pid = 0;
  ucp_ep_h endpoint = nullptr;
  bool greeted = false;
  bool left = false;
  bool heard = false;                    // that this rank leaves or has failed
  std::optional<std::string> gone = {};  // why there is no connection any more
  bool failed = false;
  int culprit = -1;
  std::string verdict = {};
  LedgerEntry last = {};        // what it was last known to do
  std::deque<Call> calls = {};  // collectives it has entered, those that this rank has not compared yet
  uint64_t agreed = 0;          // the number of the last collective that was compared, and is the same
  bool owed_answer = false;     // to its farewell
};

class Peers {
 public:
  Peers(Worker& worker, int rank, const RankLine& line);
  // Closes all connections, whatever is under way on them.
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // What the others need to know to connect; everybody's, by rank, goes to connect().
  std::string introduction() const;
  void connect(const std::vector<std::string>& introductions);
  PeerError unreachable(int rank, const std::string& reason) const;
  // "rank 2 (pid 4242 on node-b)"
  std::string name(int rank) const;

  int rank() const { return rank_; }
  const RankLine& line() const { return line_; }
  // What a rank is called.
  int number(int rank) const { return line_.number(rank); }
  int own_number() const { return number(rank_); }
  int size() const { return static_cast<int>(all_.size()); }
  Peer& of(int rank) { return all_[static_cast<size_t>(rank)]; }
  const Peer& of(int rank) const { return all_[static_cast<size_t>(rank)]; }

  void tell(int rank, Notice notice);
  void tell_all(const Notice& notice);
  // Peers are told what the worker's callbacks may not tell: answers to farewells.
  void answer();
  // Whether everybody who can still hear has heard that this rank leaves or has failed.
  bool all_have_heard() const;
  // Ends the connection to a peer; what was under way on it is over.
  void cut(int rank, std::string reason);

 private:
  struct Sent {
    Notice notice;
    bool done = false;
  };
  static void notice_sent(void* request, ucs_status_t status, void* sent);
  static ucs_status_t notice_came(void* self, const void* header, size_t header_bytes, void* data,
                                  size_t bytes, const ucp_am_recv_param_t* parameters);
  static void connection_failed(void* peer, ucp_ep_h endpoint, ucs_status_t status);
  void take(const Notice& notice);

  Worker& worker_;
  int rank_;
  RankLine line_;
  std::vector<Peer> all_;
  std::list<Sent> sent_;  // notices under way
};

}  // namespace lockstep::ucx
