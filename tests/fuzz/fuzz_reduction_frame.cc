// libFuzzer target: `./dev fuzz reduction_frame`.
#include <cstddef>
#include <cstdint>

#include "fuzz/reduction_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_reduction_frame({reinterpret_cast<const char*>(data), size});
  return 0;
}
