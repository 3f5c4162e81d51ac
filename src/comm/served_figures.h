// What Reduction Servers have done for a rank: for the summary of a run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct ServedFigures {
  int64_t servers = 0;                         // at the start
  int64_t alive = 0;                           // of them, now
  int64_t hosts = 0;                           // that send a stream of sums each
  int64_t sums = 0;                            // collectives that went through them
  int64_t bytes_sent = 0, bytes_received = 0;  // by this rank
  double seconds = 0;                          // in those collectives
  int64_t fallbacks = 0;          // collectives that were completed without a server that was lost in them
  std::vector<std::string> lost;  // which, and why
};

}  // namespace lockstep
