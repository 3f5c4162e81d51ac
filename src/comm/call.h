// What all ranks must agree on before they touch the data of a collective: compared where they meet, so that
// a rank that strays is named, with both calls.
#pragma once
#include "comm/collective.h"
#include "comm/peer_error.h"

namespace lockstep {

// Has no pointers: it lies in shared memory and goes over the wire.
struct Call {
  uint64_t number = 0;
  uint32_t kind = 0;
  uint32_t type = 0;
  uint32_t order = 0;
  uint32_t direct = 0;  // buffers are where the peers can reach them
  int64_t count = 0;
  int64_t element = 0;
  int64_t root = 0;
  bool operator==(const Call&) const = default;
};

Call call_of(const Collective& collective, bool direct);
// "all_reduce #17 (40 B) of 10 f32 (canonical order, root 0, shared buffers)"
std::string text_of(const Call& call);

// For a rank that finds a peer in another call.
PeerError different_calls(const Collective& collective, int rank, const Call& own, int peer,
                          const Call& theirs);

}  // namespace lockstep
