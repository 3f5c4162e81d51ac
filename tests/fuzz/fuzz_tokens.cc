// libFuzzer target: `./dev fuzz tokens`.
#include <cstddef>
#include <cstdint>

#include "fuzz/tokens.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_tokens({reinterpret_cast<const char*>(data), size});
  return 0;
}
