// What the system knows about this process.
#pragma once
#include <cstdint>

namespace lockstep {

// Since the process was started, by the system's clock (to a hundredth of a second).
double seconds_since_start();
int64_t peak_memory_bytes();

}  // namespace lockstep
