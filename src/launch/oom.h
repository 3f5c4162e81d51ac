// Whether the kernel killed something for lack of memory: it counts its kills, per control group and for the
// machine. A count that has risen while a worker was killed by SIGKILL is as good a proof as there is without
// reading the kernel's log.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

class OomWatch {
 public:
  // The counters of this process's control groups (versions 2 and 1), or /proc/vmstat's.
  OomWatch();
  // Other files to read "oom_kill N" lines from.
  explicit OomWatch(std::vector<std::string> files);

  // Whether there was a kill since the last call, or since the watch began. Files that are not there count
  // nothing.
  bool killed();

 private:
  int64_t count() const;

  std::vector<std::string> files_;
  int64_t seen_ = 0;
};

}  // namespace lockstep
