// libFuzzer target: `./dev fuzz jinja`.
#include <cstddef>
#include <cstdint>

#include "fuzz/jinja.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_jinja({reinterpret_cast<const char*>(data), size});
  return 0;
}
