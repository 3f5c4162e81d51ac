// libFuzzer target: `./dev fuzz image`.
#include <cstddef>
#include <cstdint>

#include "fuzz/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_image({reinterpret_cast<const char*>(data), size});
  return 0;
}
