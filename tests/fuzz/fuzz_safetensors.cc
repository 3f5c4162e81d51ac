// libFuzzer target: `./dev fuzz safetensors`.
#include <cstddef>
#include <cstdint>

#include "fuzz/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_safetensors({reinterpret_cast<const char*>(data), size});
  return 0;
}
