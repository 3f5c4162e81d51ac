// libFuzzer target: `./dev fuzz launch_environment`.
#include <cstddef>
#include <cstdint>

#include "fuzz/launch_environment.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_launch_environment({reinterpret_cast<const char*>(data), size});
  return 0;
}
