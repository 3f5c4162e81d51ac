// libFuzzer target: `./dev fuzz generation_config`.
#include <cstddef>
#include <cstdint>

#include "fuzz/generation_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_generation_config({reinterpret_cast<const char*>(data), size});
  return 0;
}
