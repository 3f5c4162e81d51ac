// libFuzzer target: `./dev fuzz field`.
#include <cstddef>
#include <cstdint>

#include "fuzz/field.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_field({reinterpret_cast<const char*>(data), size});
  return 0;
}
