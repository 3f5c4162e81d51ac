// How large the pieces are in which gradients are reduced while backward goes on.
//
// Every bucket costs the latency of a collective; and the last one can only begin when backward has ended, so
// its transfer is always in the open. With a latency a and a bandwidth B, both measured on the group itself,
// n buckets of S bytes in all cost n a + S / (n B) beyond what the transfer takes anyway: least for buckets
// of sqrt(S a B) bytes.
#pragma once
#include <cstdint>
#include <string>

#include "comm/group.h"

namespace lockstep {

struct BucketChoice {
  int64_t bytes = 0;   // of a bucket; a multiple of a flat block
  int64_t total = 0;   // of all of them
  double latency = 0;  // seconds; 0 where nothing was measured
  double bytes_per_second = 0;

  int64_t count() const { return bytes == 0 ? 0 : (total + bytes - 1) / bytes; }
  // "9 of 2.4 MiB, the last open (all_reduce takes 12 us + 1 s per 9.1 GB)"
  std::string text() const;
};

// Runs some collectives; all ranks call it together and get the same. `total` bytes of f32 will be reduced.
BucketChoice measure_buckets(Group& group, int64_t total, SumOrder order);
// As somebody else has chosen.
BucketChoice fixed_buckets(int64_t bytes, int64_t total);
// The rule by itself.
int64_t best_bucket(int64_t total, double latency, double bytes_per_second, int ranks);

}  // namespace lockstep
