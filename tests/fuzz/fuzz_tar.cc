// libFuzzer target: `./dev fuzz tar`.
#include <cstddef>
#include <cstdint>

#include "fuzz/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_tar({reinterpret_cast<const char*>(data), size});
  return 0;
}
