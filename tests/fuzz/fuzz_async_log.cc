// libFuzzer target: `./dev fuzz async_log`.
#include <cstddef>
#include <cstdint>

#include "fuzz/async_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_async_log({reinterpret_cast<const char*>(data), size});
  return 0;
}
