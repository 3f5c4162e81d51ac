// Pace: for benches and tests, how long a microbatch takes at least on each worker of a host, so that workers
// of different speeds can be had on one machine whose cores they share. LOCKSTEP_TEST_PACE=0.02,0.02,0.1
// names seconds by local rank; without it nothing ever waits.
#pragma once
#include <chrono>
#include <cstdint>

#include "launch/variables.h"

namespace lockstep {

class Pace {
 public:
  explicit Pace(int64_t local_rank, const Variables& variables = process_variables());

  void begin() { start_ = std::chrono::steady_clock::now(); }
  // Sleeps until so many microbatches have had their time since begin().
  void wait(int64_t microbatches) const;

 private:
  double seconds_ = 0;  // of a microbatch
  std::chrono::steady_clock::time_point start_ = {};
};

}  // namespace lockstep
