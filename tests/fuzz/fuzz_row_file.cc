// libFuzzer target: `./dev fuzz row_file`.
#include <cstddef>
#include <cstdint>

#include "fuzz/row_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_row_file({reinterpret_cast<const char*>(data), size});
  return 0;
}
