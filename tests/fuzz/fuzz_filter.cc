// libFuzzer target: `./dev fuzz filter`.
#include <cstddef>
#include <cstdint>

#include "fuzz/filter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_filter({reinterpret_cast<const char*>(data), size});
  return 0;
}
