// RunDownloads: runs of elements on their way from a device to the host, in as few transfers as there are
// stretches of its memory. A leaf of a matrix lies in one piece and is a run of every row of the whole:
// thousands of a few hundred bytes, each of which would take as long as a large one.
#pragma once
#include <cstddef>
#include <vector>

#include "backend/backend.h"

namespace lockstep {

class RunDownloads {
 public:
  explicit RunDownloads(Backend& backend) : backend_(backend) {}

  // From a device whose memory is the host's they are copied at once.
  void add(std::byte* into, const std::byte* from, int64_t bytes);
  // All that were added; in how many transfers.
  int64_t finish();

 private:
  struct Run {
    std::byte* into;
    const std::byte* from;
    int64_t bytes;
  };
  Backend& backend_;
  std::vector<Run> runs_;
};

}  // namespace lockstep
