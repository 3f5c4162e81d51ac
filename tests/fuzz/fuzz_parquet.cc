// libFuzzer target: `./dev fuzz parquet`.
#include <cstddef>
#include <cstdint>

#include "fuzz/parquet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_parquet({reinterpret_cast<const char*>(data), size});
  return 0;
}
