// libFuzzer target: build with -DLOCKSTEP_FUZZ=ON and clang, then
//   fuzz_parquet -max_len=4096 NEW_CORPUS tests/fuzz/corpus/parquet
#include <cstddef>
#include <cstdint>

#include "fuzz/parquet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_parquet({reinterpret_cast<const char*>(data), size});
  return 0;
}
