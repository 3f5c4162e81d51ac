// libFuzzer target: `./dev fuzz labels`.
#include <cstddef>
#include <cstdint>

#include "fuzz/labels.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_labels({reinterpret_cast<const char*>(data), size});
  return 0;
}
