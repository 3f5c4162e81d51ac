// A large broadcast over hosts: from the root's host along a chain of all hosts, chunk by chunk. Every link
// carries the data once, and all carry it at the same time.
//
// On every host the ranks take turns as carriers of the chunks: a carrier receives a chunk, passes it on to
// the next host, and copies it to its neighbours.
#pragma once
#include "comm/wire/courier.h"

namespace lockstep::wire {

class Chain {
 public:
  Chain(Courier& courier, const Collective& collective);
  void run();

 private:
  int64_t chunks() const;
  int64_t offset(int64_t chunk) const;
  int64_t bytes(int64_t chunk) const { return offset(chunk + 1) - offset(chunk); }
  int carrier(int host, int64_t chunk) const;
  // Makes the chunk known here and to the next host.
  void carry(int64_t chunk, Flights& receives, Flights& sends);

  Courier& courier_;
  const Collective& collective_;
  int root_host_;
  int place_;  // of this host in the chain
  std::vector<std::vector<std::byte*>> here_;
};

}  // namespace lockstep::wire
