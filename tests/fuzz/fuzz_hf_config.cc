// libFuzzer target: `./dev fuzz hf_config`.
#include <cstddef>
#include <cstdint>

#include "fuzz/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_hf_config({reinterpret_cast<const char*>(data), size});
  return 0;
}
