// Reading files that are mapped into memory. Where the file has become shorter or its disk fails, such a read
// ends in SIGBUS, which would end the process; under a guard it only ends what was reading.
#pragma once
#include <cstddef>

namespace lockstep {

// The mapped bytes that are being read, as the code under a guard sets them before it touches them. A SIGBUS
// from elsewhere is not the guard's.
struct GuardedRange {
  const std::byte* volatile begin = nullptr;
  const std::byte* volatile end = nullptr;
};

// Calls read(context, range). False: bytes of the range could not be read, and the call was left at that
// place without destructors: neither it nor what it calls may own anything or hold a lock.
bool read_guarded(void (*read)(void* context, GuardedRange& range), void* context);

// Waits until these mapped bytes are in memory; false where they cannot be read.
bool bring_to_memory(const std::byte* begin, size_t bytes);

}  // namespace lockstep
