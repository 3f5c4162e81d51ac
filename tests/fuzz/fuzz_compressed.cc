// libFuzzer target: `./dev fuzz compressed`.
#include <cstddef>
#include <cstdint>

#include "fuzz/record_formats.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_compressed({reinterpret_cast<const char*>(data), size});
  return 0;
}
