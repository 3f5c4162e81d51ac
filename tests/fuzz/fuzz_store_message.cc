// libFuzzer target: `./dev fuzz store_message`.
#include <cstddef>
#include <cstdint>

#include "fuzz/store_message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_store_message({reinterpret_cast<const char*>(data), size});
  return 0;
}
