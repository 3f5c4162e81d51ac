// The account of communication: what of it lies in the open, and what a change would save (Amdahl's law, of
// one step).
//
// Buckets are handed over while backward goes on and travel one after the other: one begins when it is there
// and the one before it is through. What of this ends after the last bucket's hand-over is exposed. A change
// alters how long a bucket travels; the rest of the step stays. Times are those of a mean step, so that
// waiting for slower workers is part of a transfer: no change of the network saves that.
#pragma once
#include <vector>

#include "observe/records.h"

namespace lockstep {

// What is known of how gradients travel, and what could be changed.
struct CommSetting {
  double latency_ms = 0;  // of a collective that carries almost nothing
  int hosts = 1;          // that exchange over a network; 1: memory of one host
  int64_t workers = 1;
  bool served = false;  // by Reduction Servers
  double bytes = 4;     // that a gradient takes on the wire

  // What gradients could be compressed to: bytes each, and milliseconds of coding for a MiB of gradients, on
  // the way and in the worker itself.
  struct Codec {
    std::string name;
    double bytes = 0;
    double coding_ms = 0;
    double own_ms = 0;
    std::string note = {};
  };
  std::vector<Codec> codecs = {};
};

// Milliseconds that are exposed where bucket b travels `transfer[b]` instead.
double exposed_with(const std::vector<CommBucket>& buckets, const std::vector<double>& transfer);

// Of a mean step with these buckets.
CommunicationSummary account_of(const std::vector<CommBucket>& buckets, double step_ms,
                                const CommSetting& setting);

}  // namespace lockstep
