// What the collectives over hosts stand on: messages between hosts, and memory that this host's ranks share.
#pragma once
#include <vector>

#include "comm/call.h"
#include "comm/message_port.h"
#include "comm/shm/shm_transport.h"
#include "comm/wire/host_map.h"

namespace lockstep::wire {

struct Flight {
  int peer;
  std::unique_ptr<Message> message;
};
using Flights = std::vector<Flight>;

class Courier {
 public:
  // `local` joins the ranks of this host; null where the map has one rank on every host.
  Courier(const HostMap& map, MessagePort& port, shm::ShmTransport* local);

  const HostMap& map() const { return map_; }
  MessagePort& port() const { return port_; }
  int rank() const { return rank_; }
  int host() const { return host_; }
  int local_rank() const { return rank_ - map_.first(host_); }
  // Ranks of this host.
  int neighbours() const { return map_.size(host_); }
  shm::ShmTransport* local() const { return local_; }
  // The others, those after this one first: not all hosts send to the same one at a time.
  std::vector<int> other_hosts() const;
  // Whether the neighbours can reach the collective's buffers where they are.
  bool is_direct(const Collective& collective) const;

  Flight send(int peer, const std::byte* data, int64_t bytes);
  Flight receive(int peer, std::byte* data, int64_t bytes);
  // All of them, which are then gone.
  void wait(Flights& flights, const Collective& collective);

  // Shows this rank's buffers to its neighbours and waits for theirs; returns everybody's, by local rank.
  std::vector<std::vector<std::byte*>> meet(const Collective& collective, bool direct,
                                            std::vector<std::byte*> buffers);

 private:
  const HostMap& map_;
  MessagePort& port_;
  shm::ShmTransport* local_;
  int rank_;
  int host_;
  bool unflushed_ = false;  // something was sent since the last meeting
};

}  // namespace lockstep::wire
