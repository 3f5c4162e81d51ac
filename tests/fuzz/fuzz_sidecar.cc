// libFuzzer target: `./dev fuzz sidecar`.
#include <cstddef>
#include <cstdint>

#include "fuzz/sidecar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_sidecar({reinterpret_cast<const char*>(data), size});
  return 0;
}
