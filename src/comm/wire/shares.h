// Who owns which elements in a collective over hosts, in which chunks they travel, and through whose hands.
//
// A chunk is completed by its owner. On every other host one rank, its carrier, adds up and sends that host's
// part of the chunk, and takes in the result; so each chunk crosses to a host and back once, and the carriers
// of successive chunks take turns, whatever the numbers of ranks. All ranks compute the same shares.
#pragma once
#include "comm/collective.h"
#include "comm/wire/host_map.h"

namespace lockstep::wire {

class Shares {
 public:
  Shares(const HostMap& map, const Collective& collective);

  // Chunks of the rank that owns most.
  int64_t chunks() const { return chunks_; }
  int64_t chunk_elements() const { return chunk_; }
  // Elements of a chunk; none beyond the owner's last.
  Slice chunk(int owner, int64_t index) const;
  // The rank of `host` that carries the chunk; the owner itself on its own host.
  int carrier(int host, int owner, int64_t index) const;

 private:
  const HostMap& map_;
  std::vector<Slice> slices_;  // by owner
  int64_t chunk_;
  int64_t chunks_;
};

}  // namespace lockstep::wire
