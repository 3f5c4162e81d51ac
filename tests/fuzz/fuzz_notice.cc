// libFuzzer target: `./dev fuzz notice`.
#include <cstddef>
#include <cstdint>

#include "fuzz/notice.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_notice({reinterpret_cast<const char*>(data), size});
  return 0;
}
