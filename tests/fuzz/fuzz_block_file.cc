// libFuzzer target: `./dev fuzz block_file`.
#include <cstddef>
#include <cstdint>

#include "fuzz/block_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_block_file({reinterpret_cast<const char*>(data), size});
  return 0;
}
