// libFuzzer target: `./dev fuzz async_frame`.
#include <cstddef>
#include <cstdint>

#include "fuzz/async_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_async_frame({reinterpret_cast<const char*>(data), size});
  return 0;
}
